# Every target is listed, with one line each, by `make help`.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.SUFFIXES:

GO ?= go

# Tools live in modules of their own, so that the product's go.mod holds only
# what the product imports.
CONTROLLER_GEN := $(GO) tool -modfile=test/tools/generate/go.mod controller-gen
CRD_REF_DOCS := $(GO) tool -modfile=test/tools/generate/go.mod crd-ref-docs
GOLANGCI_LINT := $(GO) tool -modfile=test/tools/lint/go.mod golangci-lint
CLUSTER := $(GO) run ./test/cluster/cmd

# Flags of all test runs: the race detector, where there is the C compiler that it
# needs. TESTFLAGS= without it halves the time of the first run.
TESTFLAGS ?= $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
# Rounds of each kind, and the seed, of test-race.
ROUNDS ?= 1000
SEED ?= 2026
# AutoScalers of bench-fleet, and poll intervals of each of its two measurements.
FLEET ?= 10000
FLEET_POLLS ?= 12
# The operator's configuration for `make run`.
CONFIG ?= config/manager/config.yaml
# Name, version and platforms of the image; without PLATFORMS it is the machine's own.
IMAGE ?= registry.example.com/platform/autoscale-operator
VERSION ?= v$(shell sed -n 's/^appVersion: *"\{0,1\}v\{0,1\}\([^"]*\)"\{0,1\}$$/\1/p' charts/autoscale-operator/Chart.yaml)
PLATFORMS ?=
# Nodes of the cluster, and the time that a pod takes to become ready there.
NODES ?= 1
READY_DELAY ?= 2s

# The packages that compute with numbers. Converting a number that does not fit gives
# another result on each architecture, and an int may have 32 bits: they are tested as
# a 32-bit program where those run, and vetted for arm64.
NUMBERS := ./scaling ./scaling/spec ./api/v1alpha1
NUMBERS_386 = $(if $(filter linux/amd64,$(shell $(GO) env GOHOSTOS)/$(shell $(GO) env GOHOSTARCH)),test,vet)

# The packages whose kubebuilder:rbac markers make up the operator's role.
RBAC_PACKAGES := controller binding webhook cmd/manager config/crd

##@ See it

.PHONY: help
help: ## List every target.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-18s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo

.PHONY: demo
demo: ## Watch a real control plane refuse conflicts and a Deployment follow a real metric. DEMO_KEEP=1 leaves it up.
	@$(GO) run ./test/demo

##@ Run it

.PHONY: build
build: ## Build the programs into bin/.
	@$(GO) build -o bin/ ./cmd/...

.PHONY: run
run: ## Run the operator from source against the cluster, under its own account. CONFIG=file sets its configuration.
	@$(CLUSTER) run --config='$(CONFIG)' --nodes=$(NODES) --ready-delay=$(READY_DELAY)

.PHONY: cluster-up
cluster-up: ## Start a control plane in the background and print its kubeconfig's path. NODES=0 leaves pods Pending.
	@$(CLUSTER) up --nodes=$(NODES) --ready-delay=$(READY_DELAY)

.PHONY: cluster-down
cluster-down: ## Stop that control plane and remove everything of it.
	@$(CLUSTER) down

.PHONY: node-up
node-up: ## Keep a real node with cert-manager and the operator's image up, until Ctrl-C. NODE_UP=--cert-manager=false leaves that out.
	@$(GO) build -o bin/node-up ./test/node/cmd && exec bin/node-up --tag=$(VERSION) $(NODE_UP)

.PHONY: image
image: ## Make the operator's image, bin/image.tar, without Docker. PLATFORMS=linux/amd64,linux/arm64, VERSION=v0.1.0.
	@mkdir -p bin
	@$(GO) run -C test/tools/image . --binary=cmd/manager --name=$(IMAGE) --tag=$(VERSION) $(PLATFORMS:%=--platform=%) --output=bin/image.tar

.PHONY: release-dry-run
release-dry-run: ## Make all that a release consists of in dist/, test it, and publish nothing. VERSION=v0.1.0.
	@$(CLUSTER) build --tools=helm4 >/dev/null
	@$(GO) run ./test/image/release --version=$(VERSION)
	@$(GO) test -tags=release -timeout=25m -count=1 ./test/image/release

##@ Test it

.PHONY: test
test: test-unit test-integration ## Run all tests.

.PHONY: test-unit
test-unit: ## Run the tests that need nothing but Go; those of the numbers as a 32-bit program, too.
	@$(GO) test $(TESTFLAGS) ./... | sed '/\[no test files\]$$/d'
	@echo "test-unit: the numbers on 386 and arm64"
	@GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) $(NUMBERS_386) $(NUMBERS)
	@GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) vet $(NUMBERS)

.PHONY: test-integration
test-integration: ## Run the tests that need an API server or a Prometheus (built at the first run; the API server may come from KUBEBUILDER_ASSETS).
	@$(CLUSTER) build --tools=etcd,kube-apiserver,kube-controller-manager,kubectl,kube-scheduler,kwok,prometheus,promtool,helm3,helm4 >/dev/null
	@$(GO) test $(TESTFLAGS) -tags=integration -timeout=45m \
		$$(grep -rlE --include='*_test.go' --exclude-dir=bin '^//go:build integration$$' . | xargs dirname | sort -u)
	@echo "test-integration: what Kubernetes' own HPA controller decides, with which replay compares"
	@cd test/tools/hpa && $(GO) test .

.PHONY: test-race
test-race: ## Play thousands of races between two operators, with kills and faults. ROUNDS=1000 of each kind, SEED=2026.
	@$(CLUSTER) build --tools=etcd,kube-apiserver >/dev/null
	@RACE_ROUNDS=$(ROUNDS) RACE_SEED=$(SEED) $(GO) test -tags=integration -timeout=6h -count=1 -v -run TestFC30 ./test/race

.PHONY: test-node
test-node: ## Run the tests of a real node (root; containerd, runc, containernetworking-plugins, iptables).
	@$(CLUSTER) build --tools=etcd,kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubelet,kube-proxy,coredns,certmanager >/dev/null
	@$(GO) test -tags=e2e -timeout=30m -count=1 -v ./test/node

.PHONY: e2e
e2e: ## Accept it on a real node, as test-node needs it (20 minutes). KUBECONFIG=file LOAD='kind load image-archive': on another cluster.
	@$(CLUSTER) build --tools=etcd,kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubelet,kube-proxy,coredns,certmanager,prometheus,helm3,helm4 >/dev/null
	@E2E_KUBECONFIG='$(if $(filter command line,$(origin KUBECONFIG)),$(KUBECONFIG))' E2E_LOAD='$(LOAD)' \
		$(GO) test -tags=e2e -timeout=40m -count=1 -parallel=8 -v ./test/e2e

.PHONY: bench-admission bench-guard
bench-admission: ## Measure what admission adds to a create, with up to 10,000 AutoScalers (about 10 minutes).
	@$(GO) test -tags=perf -timeout=60m -count=1 -v -run TestAdmissionCost ./test/perf
bench-guard: ## Measure what the guard adds to writes, with up to 10,000 held Deployments.
	@$(GO) test -tags=perf -timeout=30m -count=1 -v -run TestGuardCost ./test/perf

.PHONY: bench-fleet
bench-fleet: ## Measure what 10,000 AutoScalers cost, steady and with a tenth on an endpoint that hangs. FLEET=10000, FLEET_POLLS=12.
	@FLEET=$(FLEET) FLEET_POLLS=$(FLEET_POLLS) $(GO) test -tags=perf -timeout=90m -count=1 -v -run TestFleet ./test/perf

.PHONY: bench
bench: ## Run the benchmarks.
	@$(GO) test -run='^$$' -bench=. -benchmem \
		$$(grep -rlE --include='*_test.go' --exclude-dir=bin '^func Benchmark' . | xargs dirname | sort -u)

##@ Keep it in order

.PHONY: generate
generate: ## Write what is generated: deepcopy, CRDs, role, guard policies, the chart's part of them, docs/api.md.
	@rm -rf bin/generate && mkdir -p bin/generate config/crd config/rbac docs
	@echo "generate: deepcopy functions"
	@$(CONTROLLER_GEN) object:headerFile=test/tools/generate/boilerplate.go.txt paths=./api/...
	@echo "generate: config/crd"
	@$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=bin/generate/crd
	@rm -f config/crd/*.yaml && cp bin/generate/crd/*.yaml config/crd/
	@echo "generate: docs/api.md"
	@$(CRD_REF_DOCS) --log-level=WARN --config=test/tools/generate/crd-ref-docs.yaml --renderer=markdown \
		--templates-dir=test/tools/generate/templates --source-path=api --output-path=docs/api.md
	@echo "generate: config/rbac/role.yaml"
	@$(CONTROLLER_GEN) rbac:roleName=autoscale-operator $(RBAC_PACKAGES:%=paths=./%/...) output:rbac:dir=bin/generate/rbac
	@cp bin/generate/rbac/role.yaml config/rbac/role.yaml
	@rm -rf bin/generate
	@echo "generate: config/guard/policies.yaml"
	@$(GO) run ./test/guard/render
	@echo "generate: charts/autoscale-operator"
	@$(GO) run ./test/chart/generate

.PHONY: verify
verify: ## Check that what is generated, go.mod files and formatting are up to date. Changes nothing.
	@GO='$(GO)' MAKE='$(MAKE)' test/tools/verify.sh

.PHONY: lint
lint: ## Run golangci-lint with the import fences of .golangci.yml.
	@echo "lint: golangci-lint (the first run compiles it, about 4 minutes on 2 cores)"
	@$(GOLANGCI_LINT) run
