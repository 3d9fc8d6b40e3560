# SPDX-License-Identifier: GPL-2.0-only
#
# Front door of dm-polycache: every entry point, and only that. The modules are
# built by Kbuild (through scripts/build-modules.sh), userspace by
# userspace/userspace.mk. Objects go to build/, what is costly to make and
# independent of the checkout to /var/cache/dm-polycache. Each target installs the
# Debian packages that it needs, if any is missing (scripts/setup.sh).
#
# "make help" is made from the comments behind "##": a target or a variable
# without one fails "make check".

running := $(shell uname -r)
## KVER: modules, install: kernel to build for (default: the running one, else 6.12)
KVER	?= $(if $(wildcard /lib/modules/$(running)/build),$(running),6.12)
KERNELS	?= 6.12 6.1## matrix, test: the kernels that must work
KERNEL	?= 6.12## vm, runner, bench, shell, demo: the kernel to boot; vm: uml, the debug kernel
T	?=## unit, fuzz, vm: only what matches, as in T=journal or T='00[1-3]'
SEED	?=## unit: start value of the random tests, as printed by a failure
SECONDS	?= 10## fuzz: how long each fuzzer runs
VMFLAGS	?=## vm, bench, shell, demo: options for scripts/vm-run.sh, as in VMFLAGS='--mem 4G --keep'
FULL	?= 0## test: 1 runs every VM test on each kernel, also those for which one will do
V	?= 0## 1 shows the commands of the kernel's build
DESTDIR	?=## install: folder that stands for the root
PREFIX	?= /usr/local## install: where the tools and manual pages go
PC_CACHE ?=## folder for what outlives a checkout (default /var/cache/dm-polycache)

export V KERNELS FULL
ifneq ($(PC_CACHE),)
export PC_CACHE
endif

setup := scripts/setup.sh
userspace := $(MAKE) --no-print-directory -f userspace/userspace.mk
vm-run := scripts/vm-run.sh --kernel $(KERNEL) $(VMFLAGS)
# variables of this file with a meaning of their own in shells
unexport SECONDS

.DEFAULT_GOAL := all

all: modules tools ## build the modules for one kernel (KVER) and the tools

modules: ## build the modules for one kernel, into build/VERSION/ko
	@$(setup) build
	@scripts/build-modules.sh $(KVER)

matrix: ## build the modules for all kernels, with sparse over every file
	@$(setup) build
	@set -e; for k in $(KERNELS); do scripts/build-modules.sh --check $$k; done

tools: ## build the polycache command
	@$(setup) build
	@$(userspace) tools

unit: ## unit tests under address and undefined-behaviour sanitizers
	@$(setup) unit
	@$(userspace) unit $(if $(T),T='$(T)') $(if $(SEED),SEED='$(SEED)')

fuzz: ## fuzz table lines, messages, metadata and traces
	@$(setup) unit
	@$(userspace) fuzz $(if $(T),T='$(T)') SECONDS=$(SECONDS)

layers: ## check that includes only point down
	@$(setup) unit
	@scripts/check-layers.py

style: ## check format and style of sources and scripts
	@$(setup) unit
	@scripts/check-style.sh

check: layers style unit ## all that needs neither root nor a kernel: layers, style, unit

vm-modules: ## build what the virtual machine needs, for KERNEL
	@$(setup) build vm $(filter uml,$(KERNEL))
	@scripts/build-modules.sh $(KERNEL)
	@scripts/build-variants.sh $(KERNEL)
	@$(userspace) tools
	@$(MAKE) --no-print-directory $(vm-programs)

vm: vm-modules ## tests in a virtual machine, on one kernel
	@$(vm-run) $(if $(T),'$(T)','[0-9]*')

runner: ## prove that the runner of the virtual machine notices what goes wrong
	@$(setup) vm
	@scripts/test-vm-run.sh --kernel $(KERNEL)

teeth: vm-modules ## prove that the VM tests notice each broken rule, on one kernel; T=rule15
	@scripts/test-teeth.sh $(KERNEL) $(T)

bench: vm-modules ## what a hit costs in instructions, beside dm-linear and the kernel's cache
	@$(vm-run) --accel icount tests/bench/instructions.sh

shell: vm-modules ## a shell in the virtual machine, with the modules at hand
	@$(vm-run) --shell

test: ## everything, on all kernels; closes with "N passed, N failed"
	@$(setup) all
	@scripts/test-all.sh

demo: vm-modules ## a cached disk in a virtual machine: cold, warm, policy exchanged under load
	@$(vm-run) --timeout 600 --stream tests/demo/demo.sh

setup: ## install all packages that any target needs
	@$(setup) all

install: all ## install modules and tools on this machine
	scripts/install.sh --destdir '$(DESTDIR)' --prefix '$(PREFIX)' $(KVER)

uninstall: ## remove what install put there
	scripts/install.sh --remove --destdir '$(DESTDIR)' --prefix '$(PREFIX)' $(KVER)

clean: ## remove all that was built
	rm -rf build

help: ## this text
	@scripts/make-help.sh Makefile

.PHONY: all modules matrix tools unit fuzz layers style check vm runner teeth bench shell test \
	demo setup install uninstall clean help vm-modules

# Programs that tests in the guest need: tests/vm/NAME.c -> build/bin/NAME
vm-programs := $(patsubst tests/vm/%.c,build/bin/%,$(wildcard tests/vm/*.c)) build/bin/torture

build/bin/%: tests/vm/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -o $@ $< -ldevmapper -lpthread

# The power-cut test (tests/crash/torture.c)
build/bin/torture: $(wildcard tests/crash/*.c) $(wildcard tests/crash/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -o $@ $(filter %.c,$^) -lpthread
