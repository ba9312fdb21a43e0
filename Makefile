# rsbridge. `make run` and `make test` are all that a newcomer needs.
GO      ?= go
BIN     := bin/rsbridge
ARGS    ?=
ROW     ?=
WEEKS   ?= all
TWO     ?= 10m
# The race detector needs a C compiler; the binary itself never does.
RACE    := $(shell command -v cc >/dev/null 2>&1 && echo 1 || echo 0)
PACKAGES ?= ./...
# It sees only what happens at once: where nothing starts or guards anything that
# does, the first run of the tests is all. Tools of the tests have none of the product's.
RACED    = $(if $(filter ./...,$(PACKAGES)),$(or $(shell git grep -lE '^[[:space:]]*go |"sync|errgroup"' -- '*.go' ':!*_test.go' ':!cmd/bench' ':!internal/teststores' | xargs -n1 dirname | sort -u | sed 's|^|./|'),./...),$(PACKAGES))

# Without the tables of a debugger compiling takes a fifth less; traces and profiles have
# names and lines without them. MessagePack, for gin alone, takes 19 s.
LEAN := -trimpath -ldflags=-w -gcflags=all=-dwarf=false -tags=nomsgpack

# --version tells the commit, and whether files differ from it.
REVISION = $(shell git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null)
STAMP    = -ldflags='-w -X github.com/rsbridge/rsbridge/internal/version.revision=$(REVISION)'

.PHONY: build run test plain raced race-all lint vuln bench bench-two bench-large bench-weeks fuzz campaign generate dist site pictures lighthouse clean

build:
	CGO_ENABLED=0 $(GO) build $(LEAN) $(STAMP) -o $(BIN) ./cmd/rsbridge

run: build
	./$(BIN) demo $(ARGS)

# Tests write and flush small files by the thousand: in memory, where there is much.
FAST = $(shell [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 6000000 ] 2>/dev/null && \
  [ "$$(awk '/^MemAvailable/ {print $$2}' /proc/meminfo)" -gt 8000000 ] && ! mount | grep -q ' /dev/shm .*noexec' && \
  echo /dev/shm || echo $${TMPDIR:-/tmp})
# All parts of make test have the flags of the release, so that each package is compiled
# once, and once more for the race detector.
test: export CGO_ENABLED := 0
test: export GOFLAGS := $(shell $(GO) env GOFLAGS) $(LEAN)
test: export GOTMPDIR := $(or $(TMPDIR),/tmp)
# A fifth of the time of the tests went into collecting garbage: heaps may grow to five
# times what lives, and to 2 GiB at most before it is collected more often.
test: export GOGC := 400
test: export GOMEMLIMIT := 2GiB
# The servers in Java live for minutes: they need no second compiler.
test: export JDK_JAVA_OPTIONS := -XX:+UseSerialGC -XX:TieredStopAtLevel=1

# Fetches the stores and clients that the tests meet, starts them once, runs
# everything; the end names what could not be run. While the tests of one run wait
# for stores, the other parts have the processors.
test: build
	TMPDIR=$(FAST) $(GO) run ./internal/teststores/withstores $(MAKE) --no-print-directory -j2 plain lint raced

# Half of the time a package waits for stores and for its own retries: one package more than
# processors.
SIDE    := -p $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
# go itself makes room for its test binaries on disk (GOTMPDIR), and the tests for their files in memory.
INSIDE  := -exec 'env GOTMPDIR=$(TMPDIR)'
LIMIT   := 45m
LONGEST = $(if $(filter ./...,$(PACKAGES)),./destination ./bridge ./sparqlsrc ./cmd/rsbridge ./internal/embedstore)

# Lint vets all packages once, so no part of the tests does.
plain:
	$(GO) test $(SIDE) $(INSIDE) -vet=off -timeout $(LIMIT) $(LONGEST) $(PACKAGES)

# The release compresses with the zstd of Go: with pebblegozstd the race detector sees that
# one, and no library of C is compiled. Without the option each process sleeps for a second
# at its end.
raced: SHORT := -short
raced: MOD := -modfile build/race.mod
raced: build/race.mod
race-all: LIMIT := 180m
raced race-all:
	@if [ $(RACE) = 1 ]; then GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 $(GO) test $(MOD) $(SIDE) $(INSIDE) -race $(SHORT) -tags nomsgpack,pebblegozstd -vet=off -timeout $(LIMIT) $(LONGEST) $(RACED); \
	else echo "NOT RUN: the race detector: there is no C compiler (install gcc)"; fi

# Under the race detector Pebble writes down the stack of each iterator: two fifths of the time.
# A copy of it, beside the caches of the tests, does not. race-all has Pebble itself, with all that
# it checks more under the race detector.
PEBBLE := github.com/cockroachdb/pebble/v2
.PHONY: build/race.mod
build/race.mod:
	@$(GO) mod download $(PEBBLE)
	@set -e; mkdir -p build; from=$$($(GO) list -m -f '{{.Dir}}' $(PEBBLE)); \
	to=$$(dirname $$($(GO) env GOCACHE))/rsbridge-test/pebble-$$(basename $$from); \
	if [ ! -d $$to ]; then mkdir -p $$(dirname $$to); cp -R $$from $$to.$$$$; chmod -R u+w $$to.$$$$; \
	  sed -i.bak 's/^const RaceEnabled = buildtags.Race/const RaceEnabled = false/' $$to.$$$$/internal/invariants/invariants.go; \
	  mv $$to.$$$$ $$to; fi; \
	grep -q '^const RaceEnabled = false' $$to/internal/invariants/invariants.go; \
	cp go.sum build/race.sum; { cat go.mod; echo "replace $(PEBBLE) => $$to"; } > $@

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

vuln:
	$(GO) tool govulncheck ./...

clean:
	rm -rf bin build dist

# The files of a release: archives for three systems, packages for Debian and Fedora, bills of
# materials, checksums. The same commit gives the same bytes. TARGETS=linux/amd64 makes less.
TARGETS ?=
dist:
	$(GO) run ./internal/dist -revision $(REVISION) -time $(shell git log -1 --format=%ct) $(TARGETS:%=-target %)

# The documents as a site in build/site, with all links checked.
SITE := build/venv-site
site: $(SITE)/bin/mkdocs
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --clean

$(SITE)/bin/mkdocs: packaging/site/requirements.txt
	python3 -m venv $(SITE)
	$(SITE)/bin/python -m pip install -q --disable-pip-version-check -r packaging/site/requirements.txt
	touch $@

# The pictures of the README and the docs, taken in a browser at the end of a simulated week.
pictures:
	mkdir -p docs/pictures
	RSBRIDGE_PICTURES=$(CURDIR)/docs/pictures CGO_ENABLED=0 $(GO) run ./internal/teststores/withstores $(GO) test -count=1 ./httpapi/dashboard -run 'TestWeek$$'

# Every page of the dashboard and of the public side by Lighthouse, on a telephone with a slow
# connection; less than 95 is an error. On a machine with other work, or a slow one, Lighthouse
# measures the machine: LIGHTHOUSEFLAGS=--throttling.cpuSlowdownMultiplier=1 slows it no further.
LIGHTHOUSE := build/lighthouse/node_modules/.bin/lighthouse
lighthouse: $(LIGHTHOUSE)
	RSBRIDGE_LIGHTHOUSE="$(CURDIR)/$(LIGHTHOUSE) $(LIGHTHOUSEFLAGS)" CGO_ENABLED=0 $(GO) run ./internal/teststores/withstores $(GO) test -count=1 ./httpapi/dashboard -run TestLighthouse -v -timeout 45m

$(LIGHTHOUSE):
	npm install --prefix build/lighthouse --no-audit --no-fund --ignore-scripts --loglevel=error lighthouse@13.0.1

bench: build
	RSBRIDGE_VIRTUOSO_ROWS=2000000 CGO_ENABLED=0 $(GO) run ./internal/teststores/withstores $(GO) run ./cmd/bench $(if $(ROW),-row $(ROW)) $(BENCHFLAGS)
	$(GO) run ./cmd/bench -page docs/benchmarks.md

# An Oxigraph behind the update gateway and a Fuseki with its patch log, with mirrors of both in one
# Fuseki, at 14 changes a second each: how long each change takes. make bench-two TWO=1m is shorter.
bench-two: build
	CGO_ENABLED=0 $(GO) run ./internal/teststores/withstores $(GO) run ./cmd/bench -two $(TWO) -o docs/benchmarks/bench-two.json $(BENCHFLAGS)
	$(GO) run ./cmd/bench -page docs/benchmarks.md

# The same way at ten times the size, measured once: time, memory and disk; then a
# simulated week of each of the sources that ResourceSync was made for. Takes forty
# minutes, of them ten for the weeks (make bench-weeks).
bench-large: build
	CGO_ENABLED=0 $(GO) run ./cmd/bench -large -o docs/benchmarks/bench-large.json $(BENCHFLAGS)
	$(MAKE) bench-weeks

bench-weeks: build
	CGO_ENABLED=0 $(GO) run ./cmd/bench -weeks $(WEEKS) -o docs/benchmarks/bench-weeks.json $(WEEKFLAGS)
	$(GO) run ./cmd/bench -page docs/benchmarks.md

# The reference pages and notices that are made from the code.
generate:
	$(GO) test ./bridge/config ./httpapi ./httpapi/metrics ./cmd/rsbridge -run 'Reference$$' -update
	$(GO) run ./internal/notices > NOTICE

# Large numbers of what `make test` does in small: kills, random histories,
# fuzzing for minutes. Results are kept in docs/campaigns.md.
campaign: build
	RSBRIDGE_KILLS=100 RSBRIDGE_ENTITIES=100000 RSBRIDGE_PAUSE=8000 $(GO) run ./internal/teststores/withstores \
	  $(GO) test ./cmd/rsbridge -run TestKilled -v -timeout 45m
	RSBRIDGE_KILLS=200 RSBRIDGE_STOPS=100 $(GO) run ./internal/teststores/withstores \
	  $(GO) test ./cmd/rsbridge -run 'TestSeveral$$' -v -timeout 120m
	RSBRIDGE_FAULTS=200 RSBRIDGE_PAUSE=900 $(GO) run ./internal/teststores/withstores \
	  $(GO) test ./cmd/rsbridge -run 'TestFaults$$' -v -timeout 45m
	RSBRIDGE_HISTORY=all $(GO) run ./internal/teststores/withstores $(GO) test ./bridge -run TestHistory -v -timeout 45m
	RSBRIDGE_DOCUMENTS=120000 $(GO) run ./internal/teststores/withstores $(GO) test ./bridge -run TestDocuments -v -timeout 45m
	RSBRIDGE_TEST_RECORDS=postgres $(GO) run ./internal/teststores/withstores $(GO) test ./changetrack ./publish/... ./destination/... -timeout 120m
	RSBRIDGE_HISTORIES=500 $(GO) test ./destination ./publish -run 'Histor|SetBack|ComeAndGo|ForeignMirrors|Mixtures|SteadyClocks|WithoutTimes' -timeout 45m
	RSBRIDGE_HISTORIES=1000 $(GO) test ./destination -run 'TestWrongAnswers|TestWrongParts$$|TestWrongChangesInARow' -timeout 45m
	RSBRIDGE_HISTORIES=100 $(GO) test ./bridge ./sparqlsrc -run 'TestChainHistories|TestLife$$|TestHabits|TestDumpsLife|TestWorlds' -timeout 45m
	RSBRIDGE_HISTORIES=100 RSBRIDGE_CHANGES=10000 $(GO) test ./bridge -run 'TestNetwork$$' -v -parallel 16 -timeout 90m
	RSBRIDGE_ENTRIES=10000000 $(GO) test ./resourcesync/... -run TestMemoryDoesNotGrow -v -timeout 45m
	RSBRIDGE_PAIRS=1000000 $(GO) test ./jsonpatch -run TestRandom -v -timeout 45m
	$(GO) run ./internal/teststores/withstores $(MAKE) race-all
	$(MAKE) fuzz FUZZTIME=120s

FUZZTIME ?= 20s
fuzz:
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test $$p -list '^Fuzz' 2>/dev/null | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x || exit 1; \
	  done; done
