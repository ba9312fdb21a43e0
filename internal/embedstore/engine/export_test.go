package engine

// Unmoved leaves the joins where the text has them.
func (o Options) Unmoved() Options { o.noPush = true; return o }

// Lenient answers what is only sometimes wrong.
func (o Options) Lenient() Options { o.lenient = true; return o }
