# SPDX-License-Identifier: GPL-2.0-only
# Everything that is compiled for userspace. Run from the repository root:
#
#   make -f userspace/userspace.mk TARGET
#
#   unit [T=metadata] [SEED=n]     unit tests under ASan and UBSan
#   fuzz [T=metadata] [SECONDS=10] libFuzzer, a run for each entry point
#   tools                          the programs
#   policy-cost                    ns a hit and a miss of each policy, bytes a block, and ms
#                                  of an exchange
#   clean
#
# The [S] sources and the policies come from sources.mk, the list that Kbuild reads.
# A program links the objects themselves: from an archive the linker would drop the
# constructors by which policies register.

include sources.mk

BUILD ?= build/user
SECONDS ?= 10
CLANG ?= clang

# Libraries of userspace/ (not the programs)
PC_USER_LIBS := kshim/kshim policies sim-auto metaio-file polycache-state \
	trace trace-formats trace-columns trace-words trace-input sim

WARN := -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers \
	-Wno-sign-compare
INCLUDES := -Iuserspace/kshim -Iuserspace -Idm-target -Ipolicies -Itests/unit
CFLAGS_ALL := -std=gnu11 -g $(WARN) $(INCLUDES) -DPC_VERSION=\"$(PC_VERSION)\" -MMD -MP
SAN := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZSAN := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

sources := $(wildcard $(PC_SHARED:%=dm-target/%.c) $(PC_POLICIES:%=policies/%.c) \
		      $(PC_USER_LIBS:%=userspace/%.c))
helpers := $(filter-out tests/unit/test-%.c,$(wildcard tests/unit/*.c))
T ?= *
unit_sources := $(wildcard $(T:%=tests/unit/test-%.c))
fuzz_sources := $(wildcard $(T:%=tests/fuzz/fuzz-%.c))

san_objects := $(sources:%.c=$(BUILD)/san/%.o) $(helpers:%.c=$(BUILD)/san/%.o)
fuzz_objects := $(sources:%.c=$(BUILD)/fuzz/%.o)
command_sources := $(filter-out $(sources),$(wildcard userspace/polycache*.c))
unit_programs := $(unit_sources:tests/unit/%.c=$(BUILD)/%)
fuzz_programs := $(fuzz_sources:tests/fuzz/%.c=$(BUILD)/%)

# V=1 shows commands
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1) $(2)")

command_libs := -ldevmapper -ljson-c
# libarchive: test-trace makes compressed files; the command loads it when it needs it
unit_libs := -lcmocka -Wl,--as-needed -larchive

.PHONY: tools unit fuzz clean unit-programs policy-cost
.DELETE_ON_ERROR:
.SECONDARY:

tools: $(BUILD)/polycache

unit-programs: $(unit_programs)

unit: $(unit_programs) $(BUILD)/polycache-san
	@PC_SEED="$(or $(SEED),$(PC_SEED))" sh tests/unit/run.sh $(unit_programs)

fuzz: $(fuzz_programs)
	@set -e; for p in $(fuzz_programs); do \
		corpus=$(BUILD)/corpus/$${p##*/}; mkdir -p $$corpus; \
		seeds=tests/fuzz/seeds/$${p##*/fuzz-}; test -d $$seeds || seeds=; \
		$$p -max_total_time=$(SECONDS) -print_final_stats=1 -artifact_prefix=$(BUILD)/ \
			$$corpus $$seeds >$$p.log 2>&1 || \
			{ tail -40 $$p.log; echo "$${p##*/}: FAILED"; exit 1; }; \
		runs=$$(sed -n 's/^stat::number_of_executed_units: */runs /p' $$p.log); \
		echo "$${p##*/}: $$runs, no findings"; \
	done

policy-cost: $(BUILD)/policy-cost $(BUILD)/policy-exchange
	@$(BUILD)/policy-cost
	@$(BUILD)/policy-exchange

clean:
	rm -rf $(BUILD)

$(BUILD)/san/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  ,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(SAN) $(CFLAGS) -c -o $@ $<

$(BUILD)/tool/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  ,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -O2 $(CFLAGS) -c -o $@ $<

$(BUILD)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(CLANG) $(CFLAGS_ALL) $(FUZZSAN) $(CFLAGS) -c -o $@ $<

$(unit_programs): $(BUILD)/test-%: $(BUILD)/san/tests/unit/test-%.o $(san_objects)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN) $(LDFLAGS) -o $@ $^ $(unit_libs)

# the command, and for test-command the same under sanitizers
$(BUILD)/polycache: $(sources:%.c=$(BUILD)/tool/%.o) $(command_sources:%.c=$(BUILD)/tool/%.o)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(command_libs)

$(BUILD)/polycache-san: $(sources:%.c=$(BUILD)/san/%.o) $(command_sources:%.c=$(BUILD)/san/%.o)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN) $(LDFLAGS) -o $@ $^ $(command_libs)

bench_programs := $(BUILD)/policy-cost $(BUILD)/policy-exchange
$(bench_programs): $(BUILD)/%: $(BUILD)/tool/tests/bench/%.o $(sources:%.c=$(BUILD)/tool/%.o)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^

$(fuzz_programs): $(BUILD)/fuzz-%: $(BUILD)/fuzz/tests/fuzz/fuzz-%.o $(fuzz_objects)
	$(call say,LINK,$@)
	$(Q)$(CLANG) $(FUZZSAN) $(LDFLAGS) -o $@ $^

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
