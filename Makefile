# gmc -- make (build), make demo, make papers, make test, make oracles, make bench, make fuzz; on a GPU make test-gpu, make bench-gpu. V=1 shows commands.

BUILD  := build
CC     ?= cc
CFLAGS ?= -O2 -g1
WARN   := -Wall -Wextra
# Of compiler and runtime: no number changes its type unsaid.
TYPES  := -Wconversion -Wno-sign-conversion
Q      := $(if $(V),,@)

BASE   := $(wildcard compiler/base/*.c)
FRONT  := $(wildcard compiler/front/*.c)
GRAPH  := $(wildcard compiler/graph/*/*.c)
KERNEL := $(wildcard compiler/kernel/*.c compiler/kernel/*/*.c)
EMIT   := $(wildcard compiler/emit/*.c)
PAGES  := $(wildcard compiler/pages/*.c)
DRIVER := $(wildcard compiler/driver/*.c)
GEN    := $(BUILD)/gen/grammar.c $(BUILD)/gen/lexer.c
OBJ    := $(patsubst %.c,$(BUILD)/obj/%.o,$(BASE) $(FRONT) $(GRAPH) $(KERNEL) $(EMIT) $(PAGES) $(DRIVER)) $(BUILD)/obj/gen/grammar.o $(BUILD)/obj/gen/lexer.o \
          $(patsubst %,$(BUILD)/obj/runtime/backends/%.o,library nvrtc cuda files option_table)
# Numbers as text: by Dragonbox, where its header and a C++ compiler are installed.
DRAGONBOX := $(if $(shell command -v $(CXX)),$(patsubst %/dragonbox/dragonbox.h,%,$(firstword $(wildcard /usr/include/dragonbox-*/dragonbox/dragonbox.h \
             /usr/include/dragonbox/dragonbox.h /usr/local/include/dragonbox-*/dragonbox/dragonbox.h /usr/local/include/dragonbox/dragonbox.h))))
HOST   := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(if $(DRAGONBOX),runtime/host/decimal.c),$(wildcard runtime/host/*.c runtime/host/*/*.c runtime/backends/*.c))) \
          $(if $(DRAGONBOX),$(BUILD)/obj/runtime/host/decimal_cc.o)
CPPFLAGS += -Icompiler/front -Icompiler/base -I$(BUILD)/gen

MANUAL := $(BUILD)/gmc.1 $(BUILD)/gmc-program.1 $(BUILD)/gmc.bash

all: $(BUILD)/gmc $(BUILD)/gmc-stored $(BUILD)/libgmhost.a $(MANUAL)

$(BUILD)/gmc: $(OBJ)
	@echo "  link  $@"
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm -ldl -lpthread

# The commands of gmc about stored draws.
$(BUILD)/gmc-stored: $(BUILD)/obj/runtime/stored.o $(BUILD)/libgmhost.a
	@echo "  link  $@"
	$(Q)$(CC) $(CFLAGS) -fopenmp -o $@ $^ -ljansson -lm -ldl

$(BUILD)/libgmhost.a: $(HOST)
	@echo "  ar    $@"
	$(if $(DRAGONBOX),,@echo "  note  without libdragonbox-dev and g++ programs write their draws more slowly")
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/gen/grammar.c $(BUILD)/gen/grammar.h &: compiler/front/grammar.y
	@mkdir -p $(BUILD)/gen
	@echo "  bison $<"
	$(Q)bison -Wall -Werror -o $(BUILD)/gen/grammar.c --header=$(BUILD)/gen/grammar.h $<

$(BUILD)/gen/lexer.c $(BUILD)/gen/lexer.h &: compiler/front/lexer.l $(BUILD)/gen/grammar.h
	@mkdir -p $(BUILD)/gen
	@echo "  flex  $<"
	$(Q)flex -o $(BUILD)/gen/lexer.c --header-file=$(BUILD)/gen/lexer.h $<

# What the headers that a program includes declare: no name of a model may be one of these there.
HEADERS := $(wildcard runtime/device/*.h) runtime/host/model.h runtime/host/device.h runtime/backends/linalg.h runtime/backends/sparse.h

$(BUILD)/gen/runtime_words.def: compiler/base/words.awk $(HEADERS)
	@mkdir -p $(BUILD)/gen
	@echo "  awk   $<"
	$(Q)LC_ALL=C awk -f $< $(HEADERS) | LC_ALL=C sort > $@.part && mv $@.part $@

$(BUILD)/obj/compiler/base/words.o: $(BUILD)/gen/runtime_words.def

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c | $(GEN)
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(CPPFLAGS) $(CFLAGS) -MMD -c -o $@ $<

$(BUILD)/obj/compiler/%.o: compiler/%.c | $(GEN)
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(CPPFLAGS) $(WARN) $(TYPES) $(CFLAGS) -MMD -c -o $@ $<

$(BUILD)/obj/runtime/%.o: runtime/%.c
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(WARN) $(TYPES) -Wdouble-promotion $(CFLAGS) $(LOOPS) -fopenmp -MMD -c -o $@ $<

$(BUILD)/obj/runtime/host/nuts.o $(BUILD)/obj/runtime/host/metric.o: LOOPS = -ftree-vectorize -fno-math-errno -fno-trapping-math -fassociative-math -fno-signed-zeros

$(BUILD)/obj/runtime/host/decimal_cc.o: runtime/host/decimal.cc
	@mkdir -p $(@D)
	@echo "  c++   $<"
	$(Q)$(CXX) -std=c++17 $(WARN) -O2 -g1 -fno-exceptions -fno-rtti -I$(DRAGONBOX) -MMD -c -o $@ $<

# Manual pages and completion, from the tables of options.
$(BUILD)/gen/pages: docs/man/pages.c compiler/driver/options.def compiler/driver/passes.def runtime/host/options.def
	@mkdir -p $(BUILD)/gen
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(WARN) -O0 -o $@ $<

$(BUILD)/gmc.1: WHAT = gmc
$(BUILD)/gmc-program.1: WHAT = program
$(BUILD)/gmc.bash: WHAT = bash
$(MANUAL): $(BUILD)/gen/pages
	$(Q)$< $(WHAT) > $@.part && mv $@.part $@

# ---- tests ----

VENV   := $(BUILD)/venv
PYTHON := $(VENV)/bin/python
CTESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/runtime/*.c tests/host/*.c tests/front/*.c tests/graph/*.c tests/kernel/*.c))
TSUITE := $(patsubst $(BUILD)/tests/%,$(BUILD)/tests/%.test,$(filter-out $(BUILD)/tests/front/front_dump,$(CTESTS)))

# Flags of programs (driver/main.c): fma() is an instruction, and no call of the C library.
AS_PROGRAMS := -O2 -g1 -fno-ipa-ra -march=native -fno-math-errno -fno-trapping-math

$(BUILD)/tests/runtime/%: tests/runtime/%.c $(wildcard runtime/device/*.h tests/runtime/*.h)
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(WARN) $(AS_PROGRAMS) -Iruntime/device -o $@ $< -lgsl -lgslcblas -lm

$(BUILD)/tests/runtime/nuts: tests/runtime/nuts.c tests/runtime/check.h $(wildcard runtime/device/*.h) $(BUILD)/libgmhost.a
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(WARN) $(AS_PROGRAMS) -Iruntime/device -o $@ $< $(BUILD)/libgmhost.a -lgsl -lgslcblas -lm

$(BUILD)/tests/runtime/linalg $(BUILD)/tests/runtime/fill: $(BUILD)/tests/runtime/%: tests/runtime/%.c tests/runtime/check.h $(BUILD)/libgmhost.a
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -g1 -fopenmp -o $@ $< $(BUILD)/libgmhost.a -lm -ldl

$(BUILD)/tests/host/%: tests/host/%.c tests/host/toy.h $(BUILD)/libgmhost.a
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -fopenmp -Iruntime/host -Iruntime/device -o $@ $< $(BUILD)/libgmhost.a -ljansson -lm -ldl

$(BUILD)/tests/front/%: tests/front/%.c $(filter-out $(BUILD)/obj/compiler/driver/main.o,$(OBJ))
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(CPPFLAGS) $(WARN) $(CFLAGS) -o $@ $^ -lm

$(BUILD)/tests/graph/%: tests/graph/%.c $(filter-out $(BUILD)/obj/compiler/driver/main.o,$(OBJ))
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(CPPFLAGS) $(WARN) $(CFLAGS) -o $@ $^ -lm

$(BUILD)/tests/kernel/%: tests/kernel/%.c $(filter-out $(BUILD)/obj/compiler/driver/main.o,$(OBJ))
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(CPPFLAGS) $(WARN) $(CFLAGS) -o $@ $^ -lm

$(BUILD)/tests/%.test: $(BUILD)/tests/%
	@printf 'RUN: cd %%root && %%S/$(notdir $*)\n' > $@

# The cases of tests/posteriors in shares: a test of its own for each would start Python as often.
SHARES := 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16
CASES  := $(SHARES:%=$(BUILD)/tests/posteriors/%_of_16.test)

$(BUILD)/tests/posteriors/%_of_16.test: Makefile
	@rm -rf $(BUILD)/tests/cases $(BUILD)/tests/defects && mkdir -p $(@D)     # where older builds had them
	@printf 'RUN: %%python %%root/tests/posteriors/run.py --quick --share $*/16 %%root/build/gmc %%root/tests/posteriors\n' > $@

$(BUILD)/tests/columns: tests/columns.c
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -g1 -o $@ $<

tests: all $(CTESTS) $(TSUITE) $(CASES) $(BUILD)/tests/columns

test: need-test
	$(Q)$(MAKE) --no-print-directory -j2 tests
	$(Q)$(PYTHON) tests/run

# Compiler, runtime, programs and the C tests under the address and undefined-behaviour sanitizers, the writer of draws under the thread sanitizer.
ASAN := -O1 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer
asan: need-test
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/asan CFLAGS="$(ASAN)" sanitized
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/tsan CFLAGS="-O1 -g -fsanitize=thread" $(BUILD)/tsan/tests/host/draws
	$(Q)ln -sfn ../stdlib $(BUILD)/stdlib && ln -sfn ../runtime $(BUILD)/runtime     # gmc looks for them beside its folder
	$(Q)$(PYTHON) tests/asan/run.py

# Data and models damaged at random, minutes each, with the sanitizers: make fuzz FUZZ="--seed 2 --seconds 60". What is found is kept in build/fuzz.
fuzz: need-test
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/asan CFLAGS="$(ASAN)" all
	$(Q)ln -sfn ../stdlib $(BUILD)/stdlib && ln -sfn ../runtime $(BUILD)/runtime
	$(Q)status=0; for f in $(wildcard tests/fuzz/*.py); do $(PYTHON) $$f $(FUZZ) || status=1; done; exit $$status

sanitized: all $(filter-out $(BUILD)/tests/runtime/%,$(CTESTS))

# One test again: make retest T=tests/errors/E0203_undefined.gm
retest: tests
	$(Q)$(PYTHON) tests/run $(T)

bless: all
	$(Q)python3 tests/golden/bless.py

# What gmc says of every model is as it is now: tests/freeze.txt.
freeze: all
	$(Q)python3 tests/freeze.py --renew

oracles: all
	$(Q)python3 tests/oracles/run.py

bench: all
	$(Q)python3 tests/bench/run.py

# All tests that need a GPU. Exit status 3 (2 of make) and one line where there is none.
test-gpu: need-test all
	$(Q)$(PYTHON) tests/gpu/all.py

# Milliseconds a sweep on a GPU, against what bounds it and against library calls: the table of docs/performance.md.
bench-gpu: all
	$(Q)python3 tests/bench/gpu.py

# The layout of .clang-format (clang-format 14, Debian: apt-get install clang-format-14).
format:
	$(Q)clang-format-14 -i $$(git ls-files 'compiler/*.c' 'compiler/*.h' 'runtime/*.c' 'runtime/*.h' 'runtime/*.cc')

# ---- a first look ----

demo: need-build
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) all
	$(BUILD)/gmc examples/horseshoe_probit/horseshoe_probit.gm -o $(BUILD)/horseshoe_probit
	cd examples/horseshoe_probit && ../../$(BUILD)/horseshoe_probit emails.csv X=emails.csv:make-capitalTotal \
	    --samples 5000 --params alpha,tau,beta --seed 1 --overwrite -o ../../$(BUILD)/draws

# Five papers: their models, checked and timed, in two minutes; curves in build/papers. make papers PAPERS="--full --device gpu"
papers: all
	$(Q)python3 examples/papers/run.py $(PAPERS)

# ---- what has to be installed ----

APT_BUILD := gcc g++ make flex bison libopenblas-dev libjansson-dev libdragonbox-dev libsuitesparse-dev zlib1g-dev
APT_TEST  := clang libgsl-dev libnetcdf19 libsundials-cvodes6 llvm-14-tools python3-venv jags
PIP_TEST  := lit numpy scipy mpmath 'arviz<1' h5netcdf h5py nvidia-cuda-nvrtc

need-build:
	$(Q)sh tests/need.sh $(APT_BUILD)

need-test:
	$(Q)sh tests/need.sh $(APT_BUILD) $(APT_TEST)
	$(Q)test -x $(VENV)/bin/lit || { mkdir -p $(BUILD) && python3 -m venv $(VENV) && $(VENV)/bin/pip install -q $(PIP_TEST); } || \
	  { echo "the tests need Python packages: python3 -m venv $(VENV) && $(VENV)/bin/pip install $(PIP_TEST)"; rm -rf $(VENV); exit 1; }

# ---- installation: gmc, its manual pages, its runtime, its stdlib, and the documentation with its examples ----

PREFIX ?= /usr/local
install: all
	install -D -m 755 $(BUILD)/gmc $(DESTDIR)$(PREFIX)/bin/gmc
	install -D -m 755 $(BUILD)/gmc-stored $(DESTDIR)$(PREFIX)/lib/gmc/gmc-stored
	install -D -m 644 $(BUILD)/libgmhost.a $(DESTDIR)$(PREFIX)/lib/libgmhost.a
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(BUILD)/gmc.1 $(BUILD)/gmc-program.1
	install -D -m 644 $(BUILD)/gmc.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/gmc
	mkdir -p $(DESTDIR)$(PREFIX)/share/gmc
	cp -r stdlib runtime $(DESTDIR)$(PREFIX)/share/gmc/
	mkdir -p $(DESTDIR)$(PREFIX)/share/doc/gmc
	cp -r README.md CHANGELOG.md CITATION.cff LICENSE docs examples $(DESTDIR)$(PREFIX)/share/doc/gmc/

clean:
	rm -rf $(BUILD)

.PHONY: all clean format demo papers test tests asan fuzz sanitized retest bless freeze oracles bench bench-gpu test-gpu need-build need-test install
# A header or a table that is no longer there: what was made with it is made again.
compiler/%.h compiler/%.def runtime/%.h runtime/%.def: ;

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
