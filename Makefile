# `make run` and `make test` are all that a newcomer types. Both install what the system lacks (see .ci/packages).
SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
# Outside of the checkout, so that worktrees share the compiled dependencies.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tidemill/target

# Arguments for the server: make run ARGS="--workers 2"
ARGS ?=

.PHONY: run build test fmt docs

run: build
	@echo
	@echo '  Connect from another terminal:  psql -h 127.0.0.1 -p 5433 -U tidemill tidemill'
	@echo
	@exec "$(CARGO_TARGET_DIR)/release/tidemill" $(ARGS)

build:
	@.ci/packages run
	cargo build --release --locked -p server

test:
	@.ci/packages test
	cargo build --release --locked -p server
	.ci/test

fmt:
	cargo fmt --all

docs:
	mdbook build docs
