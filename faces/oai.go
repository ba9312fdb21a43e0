package faces

func (q *request) oai(rest string) error { return q.noNode() }
