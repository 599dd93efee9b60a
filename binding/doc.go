// Package binding decides who owns the replica count of a Deployment.
//
// Each managed Deployment has one ScaleBinding of its own name. Whoever is named
// by its spec.ownerUID owns the count; nobody else writes it. Webhook replicas
// and the controller run the same code at the same time and share nothing:
// correctness rests on two promises of the API server alone, that a name is
// created once and that an update with a resourceVersion succeeds only on that
// version. All reads that a decision about ownership rests on are live.
package binding
