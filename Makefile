# Two commands do all set-up on a fresh Debian machine with Go:
#   go run . demo
#   make test

GO ?= go

.PHONY: test chromium accountants generated fmt lint fuzz kill naive month bench generate

# Tests commit to ledgers of their own thousands of times, each time down to the
# disk. Where there are 4 GiB of memory to spare, that is where they live: a test
# kills processes, never the power.
SCRATCH := $(shell df --output=avail -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4194304 { print "/dev/shm" }')

# The race detector watches every line of ours and of the libraries, but for SQLite
# itself: that is C turned into Go, of which one connection runs on one goroutine at
# a time, and watching it makes the tests of the ledger several times as slow. No
# package with generics may stand here: others could be given its unwatched copies
# of them, and then the detector sees races that are none.
RACE = -race -gcflags='modernc.org/sqlite/lib=-race=false'

# LONGEST are begun first: one of them alone at the end would keep a core idle.
LONGEST = ./dispatch ./web ./store

# test is what CI runs: the browser, the accountants' tools, the generated files,
# the form of the code, then every test with the race detector.
test: chromium accountants generated fmt lint
	$(if $(SCRATCH),TMPDIR=$(SCRATCH)) $(GO) test $(RACE) -timeout 14m $(LONGEST) ./...

# chromium comes from Debian; the browser tests fail without it, they never skip.
chromium:
	@command -v chromium >/dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium; }

# accountants are the two tools that add exported books up; the tests of exports
# fail without them.
accountants:
	@command -v hledger >/dev/null && command -v bean-check >/dev/null || { apt-get update && apt-get install -y --no-install-recommends hledger beancount; }

# generate writes the Go that templ makes of the pages.
generate:
	$(GO) tool templ generate -path views

# generated fails when the committed files are not what the pages say.
generated:
	@before=$$(cat views/*_templ.go | sha256sum); \
	$(GO) tool templ generate -path views -log-level error || exit 1; \
	after=$$(cat views/*_templ.go | sha256sum); \
	if [ "$$before" != "$$after" ]; then echo "views/*_templ.go were stale: run make generate and commit"; exit 1; fi
	$(GO) mod tidy -diff

fmt:
	@stale=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
	if [ -n "$$stale" ]; then echo "gofmt wants: $$stale"; exit 1; fi

lint:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Long runs, outside CI. Write the figures down in docs/figures.md.
FUZZTIME ?= 10m
fuzz:
	@for where in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
	  for name in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$where/*_test.go | sed 's/func //'); do \
	    echo "== $$where $$name"; $(GO) test $$where -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) || exit 1; done; done

# kill runs the kill test with every operation of every boundary killed once.
kill:
	HOLDFAST_TEST_KILLS=100 $(GO) test -run 'TestKill' -timeout 60m -v ./dispatch/

# naive lets ten thousand purchases of naive agents through a faulty provider.
naive:
	HOLDFAST_TEST_PURCHASES=10000 $(GO) test -run NaiveAgent -timeout 60m -v ./web/

# month lives through a simulated month of twenty thousand operations.
month:
	HOLDFAST_TEST_MONTH=20000 $(GO) test -run AMonth -timeout 60m -v ./dispatch/

bench:
	$(GO) test -run '^$$' -bench . -benchtime 3s ./store/... ./web/
