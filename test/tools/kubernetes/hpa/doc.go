// Package hpa plays random metrics through the HPA controller of Kubernetes itself, in
// fake time, and records what it decides, for the plugin's replay --compare hpa to be
// compared with. It is in the module that pins Kubernetes, which the product does not
// import.
package hpa
