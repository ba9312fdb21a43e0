package feed

// Traffic counts the requests to a source. An implementer guarantees:
//   - Begin begins a run: Received and Sent count from there, in bytes and in requests. Both may be
//     asked for beside the requests.
//   - Run is another number for each run.
//   - CloseIdle leaves requests under way alone.
type Traffic interface {
	Begin()
	Run() int64
	Received() int64
	Sent() int64
	CloseIdle()
}
