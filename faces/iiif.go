package faces

func (q *request) iiif(rest string) error { return q.noNode() }
