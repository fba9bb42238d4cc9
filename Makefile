# Everything a contributor runs. "make" alone or "make help" lists the targets.

GO       ?= go
PKG      ?= ./...
FUZZTIME ?= 5s
SYSTEMS  ?= linux darwin windows
# Where mqbench and the linters are built.
BIN      := $(CURDIR)/bin

# Modules of their own, so that their dependencies are nobody else's. (The
# third, tools, is built by lint.)
NESTED := bench interop/goclient

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables: PKG=$(PKG) FUZZTIME=$(FUZZTIME) SEEDS=$(SEEDS) BENCH=$(BENCH) BENCHFLAGS=$(BENCHFLAGS) INTEROP_VERSIONS=$(INTEROP_VERSIONS)"

.PHONY: build
build: ## compile everything, also for a 32-bit machine
	$(GO) build ./...
	GOOS=linux GOARCH=386 $(GO) build ./...

.PHONY: test
test: ## run the tests of PKG
	$(GO) test $(PKG)

.PHONY: race
race: ## run the tests of PKG under the race detector, in random order, uncached
	$(GO) test -race -count=1 -shuffle=on $(PKG)

SEEDS ?= 1000
.PHONY: crash
crash: ## the store under faults, power loss (SEEDS seeds), random stories, and kill -9 of rmqbroker 20 times; checks itself meanwhile
	@mkdir -p $(BIN)
	CRASH_SEEDS=$(SEEDS) $(GO) test -count=1 -tags invariants -timeout 60m -v \
		-run 'TestPowerLoss|TestFaultAtEveryOperation|TestMetamorphic|TestC60|TestKillUnderLoad' \
		./internal/broker/store ./cmd/rmqbroker > $(BIN)/crash.log || { grep -v '=== \|^ *--- PASS' $(BIN)/crash.log; exit 1; }
	@grep -v '=== \|^ *--- PASS: .*/.*/' $(BIN)/crash.log

.PHONY: vet
vet: ## go vet for Linux, macOS and Windows
	@for os in $(SYSTEMS); do echo "GOOS=$$os $(GO) vet"; GOOS=$$os CGO_ENABLED=0 $(GO) vet -tags interop ./... || exit 1; done

.PHONY: fmt
fmt: ## check that every file is formatted; "gofmt -w ." repairs
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not formatted:"; echo "$$out"; exit 1; fi

.PHONY: lint
lint: $(BIN)/staticcheck $(BIN)/revive ## staticcheck, and revive for comments on everything exported
	$(BIN)/staticcheck -tags interop ./...
	$(BIN)/revive -config revive.toml -formatter friendly ./...
	@for m in $(NESTED); do echo "$$m"; (cd $$m && $(BIN)/staticcheck ./... && $(BIN)/revive -config $(CURDIR)/revive.toml -formatter friendly ./...) || exit 1; done

$(BIN)/staticcheck $(BIN)/revive $(BIN)/mockgen &: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o $(BIN)/ tool
	@touch $(BIN)/staticcheck $(BIN)/revive $(BIN)/mockgen

.PHONY: generate
generate: $(BIN)/mockgen ## write internal/mocks anew
	$(BIN)/mockgen -destination internal/mocks/credentials.go -package mocks github.com/gorocketmq/rocketmq CredentialsProvider
	$(BIN)/mockgen -destination internal/mocks/selector.go -package mocks github.com/gorocketmq/rocketmq/selector QueueSelector

.PHONY: fuzz
fuzz: ## run each FuzzXxx for FUZZTIME
	@GO=$(GO) FUZZTIME=$(FUZZTIME) .ci/fuzz

.PHONY: examples
examples: ## run every example to its end
	@for d in $$(ls -d examples/*/ | grep -v /internal/); do echo "$(GO) run ./$${d%/}"; $(GO) run ./$${d%/} || exit 1; done
	$(GO) run ./examples/shop -orders 2000 -chaos

.PHONY: nested
nested: ## build, vet and test the nested modules
	@for m in $(NESTED); do echo "$$m: verify, build, vet, test"; (cd $$m && $(GO) mod verify >/dev/null && $(GO) build -o /dev/null ./... && $(GO) vet ./... && $(GO) test ./...) || exit 1; done

.PHONY: interop
interop: ## against Apache RocketMQ 5.5.0, 5.3.3 and 4.9.7; needs a JDK (17 or newer) and Maven
	$(GO) test -tags interop -count=1 -timeout 30m -v ./interop/...

BENCH ?= .
.PHONY: bench
bench: ## the benchmarks beside the code, with allocations
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

.PHONY: bench-peer
bench-peer: ## ours and the official Go client in turns, on a null broker and on rmqbroker: rates, CPU, allocations, ratios (BENCHFLAGS)
	$(GO) build -o $(BIN)/rmqbroker ./cmd/rmqbroker
	cd bench && $(GO) build -o $(BIN)/mqbench .
	$(BIN)/mqbench -rmqbroker $(BIN)/rmqbroker $(BENCHFLAGS)

APACHE ?= 5.5.0,5.3.3
.PHONY: bench-java
bench-java: ## rmqbroker and Apache's broker in turns under our client; needs a JDK and Maven; about 20 minutes (BENCHFLAGS, APACHE)
	$(GO) build -o $(BIN)/rmqbroker ./cmd/rmqbroker
	cd bench && $(GO) build -o $(BIN)/mqbench .
	$(BIN)/mqbench -apache "$(APACHE)" -interop "$(CURDIR)/interop" -rmqbroker $(BIN)/rmqbroker $(BENCHFLAGS)

.PHONY: ci
ci: ## what the server runs
	bash .ci/run
