# gmc -- make (build), make demo, make test, make oracles, make bench. V=1 shows commands.

BUILD  := build
CC     ?= cc
CFLAGS ?= -O2 -g
WARN   := -Wall -Wextra
Q      := $(if $(V),,@)

BASE   := $(wildcard compiler/base/*.c)
FRONT  := $(wildcard compiler/front/*.c)
GRAPH  := $(wildcard compiler/graph/*.c)
EMIT   := $(wildcard compiler/emit/*.c)
DRIVER := $(wildcard compiler/driver/*.c)
GEN    := $(BUILD)/gen/grammar.c $(BUILD)/gen/lexer.c
OBJ    := $(patsubst %.c,$(BUILD)/obj/%.o,$(BASE) $(FRONT) $(GRAPH) $(EMIT) $(DRIVER)) $(BUILD)/obj/gen/grammar.o $(BUILD)/obj/gen/lexer.o
HOST   := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard runtime/host/*.c) runtime/backends/linalg_cpu.c)
CPPFLAGS += -Icompiler/front -Icompiler/base -I$(BUILD)/gen

all: $(BUILD)/gmc $(BUILD)/libgmhost.a

$(BUILD)/gmc: $(OBJ)
	@echo "  link  $@"
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm

$(BUILD)/libgmhost.a: $(HOST)
	@echo "  ar    $@"
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/gen/grammar.c $(BUILD)/gen/grammar.h &: compiler/front/grammar.y
	@mkdir -p $(BUILD)/gen
	@echo "  bison $<"
	$(Q)bison -Wall -Werror -o $(BUILD)/gen/grammar.c --header=$(BUILD)/gen/grammar.h $<

$(BUILD)/gen/lexer.c $(BUILD)/gen/lexer.h &: compiler/front/lexer.l $(BUILD)/gen/grammar.h
	@mkdir -p $(BUILD)/gen
	@echo "  flex  $<"
	$(Q)flex -o $(BUILD)/gen/lexer.c --header-file=$(BUILD)/gen/lexer.h $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c | $(GEN)
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(CPPFLAGS) $(CFLAGS) -MMD -c -o $@ $<

$(BUILD)/obj/compiler/%.o: compiler/%.c | $(GEN)
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(CPPFLAGS) $(WARN) $(CFLAGS) -MMD -c -o $@ $<

$(BUILD)/obj/runtime/%.o: runtime/%.c
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -g -fopenmp -MMD -c -o $@ $<

clean:
	rm -rf $(BUILD)

.PHONY: all clean demo test oracles
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
