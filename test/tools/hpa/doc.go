// Package hpa plays random metrics through the HPA controller of Kubernetes itself, in
// fake time, and records what it decides, for the plugin's replay --compare hpa to be
// compared with: go test . -args -update. It is a module of its own, as the product does
// not import Kubernetes.
package hpa
