// Package race proves that one AutoScaler at a time owns a Deployment's replica
// count, whatever goes wrong: two real operators behind one webhook address, a real
// API server, requests that fail, stall or lose their answers, and operators that
// are killed in the middle of a claim.
//
// Every round is one race over fresh Deployments. What the clients asked and were
// told, what the operators read and wrote (as seen by the proxies between them and
// the API server), and what an independent watch saw is put into one history per
// Deployment. The history must be linearizable as a lock with epochs (model_test.go),
// and must pass checks that need no search (verdict_test.go).
package race
