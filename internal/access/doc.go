// Package access knows the users of a bridge: their tokens and roles, the sessions of their
// browsers, and a log of their actions.
//
// Everything is in one folder of the state. Processes share it: a command makes or revokes a
// token while the daemon runs, and the daemon reads the changed file at its next request.
//
//	key            32 random bytes: the key of all hashes and of the sessions
//	tokens.json    names, roles and keyed hashes of tokens
//	left.json      sessions that were left by a logout
//	actions.jsonl  the log, with actions.1.jsonl before it
//
// Tokens are random and long, so a keyed hash (HMAC-SHA-256) suits them: nobody guesses one. A
// slow hash is for passwords that people choose.
package access
