// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power cuts. A random life of the metadata is recorded, write by write and flush by
 * flush; then the power is cut in front of each of them, with every kind of subset
 * of the unflushed writes lost, and the device is started again. It must hold all
 * commits that had completed, or those and some whole transactions of the one in
 * flight: never less, never a part, and CLEAN only if it was closed. Starts are cut
 * as well, and life goes on behind them.
 *
 * The same with devices that lie about flushes must find violations, or this test
 * could not.
 */
#include <linux/errno.h>

#include "metadata-model.h"
#include "powercut.h"

enum kind {
	FORMAT, COMMIT, CHECKPOINT, CLOSE, REOPEN, LOAD, RESIZE, EMPTY,
};

static const char *const kind_names[] = {
	"format", "commit", "checkpoint", "close", "reopen", "load", "resize", "empty",
};

/* A call, and the states that a start may find while it runs. */
struct op {
	enum kind kind;
	size_t start, end;	/* events */
	size_t lo, hi;		/* states */
	bool may_be_clean;
};

struct life {
	struct unit_random r;
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct model now;	/* what is on disk, intents and all */
	struct model *states;	/* what a start makes of it */
	size_t nr_states;
	struct op *ops;
	size_t nr_ops;
	u32 per_transaction;
	bool closed;		/* CLEAN is set */
};

static void add_state(struct life *l, const struct model *m)
{
	l->states = realloc(l->states, (l->nr_states + 1) * sizeof(*l->states));
	assert_non_null(l->states);
	model_copy(&l->states[l->nr_states], m);
	model_settle(&l->states[l->nr_states]);
	l->nr_states++;
}

static struct op *begin(struct life *l, enum kind kind)
{
	struct op *o;

	l->ops = realloc(l->ops, (l->nr_ops + 1) * sizeof(*l->ops));
	assert_non_null(l->ops);
	o = &l->ops[l->nr_ops];
	memset(o, 0, sizeof(*o));
	o->kind = kind;
	o->start = l->f.nr_events;
	o->lo = l->nr_states - 1;
	o->may_be_clean = l->closed || kind == CLOSE || kind == FORMAT;
	return o;
}

static void end(struct life *l, struct op *o)
{
	o->end = l->f.nr_events;
	o->hi = l->nr_states - 1;
	if (o->end > o->start)
		l->nr_ops++;
}

static void do_commit(struct life *l, u32 n)
{
	struct pc_record *records = calloc(n, sizeof(*records));
	struct op *o = begin(l, COMMIT);

	for (u32 i = 0; i < n; i++) {
		model_change(&l->now, &l->r, &records[i]);
		if ((i + 1) % l->per_transaction == 0 || i == n - 1)
			add_state(l, &l->now);
	}
	assert_int_equal(pc_metadata_commit(l->md, records, n), 0);
	end(l, o);
	free(records);
}

static void do_checkpoint(struct life *l)
{
	struct op *o = begin(l, CHECKPOINT);

	assert_int_equal(pc_metadata_checkpoint(l->md), 0);
	end(l, o);
}

static void clear_intents(struct life *l)
{
	struct pc_record *records = calloc(l->per_transaction, sizeof(*records));
	u32 n = 0;

	for (u32 c = 0; c < l->now.nr; c++) {
		struct pc_entry *e = &l->now.entries[c];

		if (e->flags & PC_ENTRY_INTENTS) {
			e->flags &= ~PC_ENTRY_INTENTS;
			records[n].cblock = c;
			records[n++].entry = *e;
		}
		if (n == l->per_transaction || (n && c == l->now.nr - 1)) {
			struct op *o = begin(l, COMMIT);

			add_state(l, &l->now);
			assert_int_equal(pc_metadata_commit(l->md, records, n), 0);
			end(l, o);
			n = 0;
		}
	}
	free(records);
}

/* Two policies take turns; their hints can be told apart. */
struct hints {
	const struct model *m;
	const char *policy;
};

static u32 hint_of(const char *policy, u32 cblock, u64 oblock)
{
	return (cblock * 2654435761u ^ (u32)oblock) << 8 | (u8)policy[0];
}

static u32 give_hint(void *context, u32 cblock)
{
	const struct hints *h = context;

	return hint_of(h->policy, cblock, h->m->entries[cblock].oblock);
}

static void do_close(struct life *l)
{
	static const u64 counters[PC_NR_COUNTERS];
	struct hints h = { &l->now, unit_random_one_in(&l->r, 2) ? "a" : "b" };
	struct op *o;

	clear_intents(l);
	o = begin(l, CLOSE);
	assert_int_equal(pc_metadata_close_clean(l->md, h.policy, 1, give_hint, &h, counters), 0);
	end(l, o);
	l->closed = true;
}

static void do_reopen(struct life *l)
{
	struct op *o = begin(l, REOPEN);

	assert_int_equal(pc_metadata_reopen(l->md), 0);
	end(l, o);
	l->closed = false;
}

/* A start with the sizes that l->now has, which are new for a RESIZE. */
static void do_load(struct life *l, enum kind kind)
{
	struct op *o;

	pc_metadata_free(l->md);
	model_settle(&l->now);
	add_state(l, &l->now);
	o = begin(l, kind);
	l->md = model_open(&l->now, &l->f);
	model_load(&l->now, l->md, false);
	end(l, o);
	l->closed = false;
}

static void do_resize(struct life *l)
{
	u32 nr = 600 + unit_random_below(&l->r, 601);
	u64 origin = 64ull * 3000 + unit_random_below(&l->r, 64 * 1000);

	model_settle(&l->now);
	if (unit_random_one_in(&l->r, 3))
		nr = l->now.nr;
	/* what is dirty does not let the sizes shrink */
	for (u32 c = 0; c < l->now.nr; c++) {
		const struct pc_entry *e = &l->now.entries[c];
		const struct pc_metadata_params p = {
			.block_sectors = 64,
			.subblock_sectors = 8,
			.origin_sectors = origin,
		};

		if (e->dirty && (c >= nr || e->dirty & ~model_covered(&p, e->oblock))) {
			nr = max(nr, l->now.nr);
			origin = max(origin, l->now.params.origin_sectors);
		}
	}
	assert_true(model_resize(&l->now, nr, origin));
	do_load(l, RESIZE);
}

static void do_empty(struct life *l)
{
	struct op *o = begin(l, EMPTY);
	struct model blank;

	assert_int_equal(pc_metadata_set_empty(l->md), 0);
	model_init(&blank, l->now.nr, 64, 8, l->now.params.origin_sectors);
	model_free(&l->now);
	l->now = blank;
	add_state(l, &l->now);
	end(l, o);
	do_load(l, LOAD);
}

static void live(struct life *l, u64 iteration, int steps)
{
	struct op *o;

	memset(l, 0, sizeof(*l));
	unit_random_init(&l->r, "powercut", iteration);
	model_init(&l->now, 1000, 64, 8, 64 * 3500 + 20);
	/* a journal of 8 blocks, and room to grow to 1200 cache blocks */
	assert_int_equal(pc_metaio_open_memory(&l->f, 2 + 8 + 10, NULL), 0);
	l->per_transaction = 8 / 4 * 112;
	l->f.record = true;
	add_state(l, &l->now);
	o = begin(l, FORMAT);
	l->md = model_open(&l->now, &l->f);
	end(l, o);
	l->closed = true;
	do_load(l, LOAD);

	for (int i = 0; i < steps; i++) {
		switch (unit_random_below(&l->r, 16)) {
		case 0:
			do_checkpoint(l);
			break;
		case 1:
			do_close(l);
			do_reopen(l);
			break;
		case 2:
			do_close(l);
			do_load(l, LOAD);
			break;
		case 3:
			do_load(l, LOAD);
			break;
		case 4:
			if (unit_random_one_in(&l->r, 2))
				do_close(l);
			do_resize(l);
			break;
		case 5:
			if (unit_random_one_in(&l->r, 3))
				do_empty(l);
			break;
		case 6:
			do_commit(l, 500 + unit_random_below(&l->r, 500));
			break;
		case 7 ... 10:
			do_commit(l, 1 + unit_random_below(&l->r, 224));
			break;
		default:
			do_commit(l, 1 + unit_random_below(&l->r, 5));
		}
	}
}

static void die(struct life *l)
{
	pc_metadata_free(l->md);
	pc_metaio_close(&l->f);
	for (size_t i = 0; i < l->nr_states; i++)
		model_free(&l->states[i]);
	model_free(&l->now);
	free(l->states);
	free(l->ops);
}

struct check {
	struct life *l;
	struct powercut cut;
	const struct op *op;
	struct unit_random r;
	bool quiet;
	u64 images, violations, second_cuts;
};

__printf(2, 3)
static void violation(struct check *c, const char *fmt, ...)
{
	va_list args;

	if (c->violations++ > 5 || c->quiet)
		return;
	printf("cut before event %zu, during %s: ", c->cut.next, kind_names[c->op->kind]);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

/* Starts f; the entries, or NULL after a violation. */
static struct pc_entry *start(struct check *c, const struct model *params,
			      struct pc_metaio_file *f, struct pc_metadata **md, bool *clean)
{
	struct pc_entry *entries = calloc(params->nr, sizeof(*entries));
	char why[PC_META_ERR_SIZE];
	int err;

	*md = pc_metadata_open(&f->io, &params->params, &err, why);
	if (*md) {
		*clean = pc_metadata_is_clean(*md);
		err = model_load_raw(*md, entries, params->nr, why);
	}
	if (err) {
		violation(c, "start refused: %s", why);
		pc_metadata_free(*md);
		free(entries);
		return NULL;
	}
	return entries;
}

/* The recorded start of f, cut and done again, comes to the same end. */
static void cut_again(struct check *c, const struct model *params, struct pc_metaio_file *f,
		      const u8 *base, const struct pc_entry *want)
{
	u8 *image = malloc(f->io.nr_blocks * PC_META_BLOCK_SIZE);

	for (int i = 0; i < 3; i++) {
		struct powercut cut;
		struct pc_metaio_file g;
		struct pc_metadata *md;
		struct pc_entry *got;
		bool clean;

		powercut_init(&cut, f, base, c->cut.unit, (struct powercut_lies){ 0 });
		for (u64 n = unit_random_below(&c->r, f->nr_events + 1); n; n--)
			powercut_advance(&cut);
		powercut_random_image(&cut, &c->r, image);
		powercut_free(&cut);
		assert_int_equal(pc_metaio_open_memory(&g, f->io.nr_blocks, image), 0);
		got = start(c, params, &g, &md, &clean);
		if (got) {
			if (memcmp(got, want, params->nr * sizeof(*got)))
				violation(c, "a second cut changes what is found");
			pc_metadata_free(md);
			free(got);
		}
		pc_metaio_close(&g);
		c->second_cuts++;
	}
	free(image);
}

/* Life goes on after a start, and ends in another crash. */
static void live_on(struct check *c, const struct model *state, struct pc_metaio_file *f,
		    struct pc_metadata *md)
{
	struct pc_entry *entries;
	struct model m;
	bool clean;

	f->record = false;
	model_copy(&m, state);
	for (int i = 0; i < 3; i++)
		if (model_commit(&m, &c->r, md, 1 + unit_random_below(&c->r, 200)))
			violation(c, "a commit after the start failed");
	pc_metadata_free(md);
	model_settle(&m);
	entries = start(c, &m, f, &md, &clean);
	if (entries) {
		if (!model_equal(&m, entries, m.nr))
			violation(c, "a commit after the start is not found");
		pc_metadata_free(md);
		free(entries);
	}
	model_free(&m);
}

/* Each the named policy's, or none; CLEAN: each is there. */
static bool hints_match(const struct model *m, const struct pc_entry *entries,
			const char *policy, bool clean)
{
	for (u32 i = 0; i < m->nr && *policy; i++)
		if ((entries[i].flags & PC_ENTRY_MAPPED) && (entries[i].hint || clean) &&
		    entries[i].hint != hint_of(policy, i, entries[i].oblock))
			return false;
	return true;
}

static void check_image(void *context, const u8 *image)
{
	struct check *c = context;
	const struct model *params = &c->l->states[c->op->hi];
	struct pc_metaio_file f;
	struct pc_metadata *md;
	struct pc_entry *entries;
	bool clean, found = false;
	const char *policy;
	u32 version;
	size_t s;

	c->images++;
	assert_int_equal(pc_metaio_open_memory(&f, c->l->f.io.nr_blocks, image), 0);
	f.record = true;
	entries = start(c, params, &f, &md, &clean);
	if (!entries) {
		pc_metaio_close(&f);
		return;
	}
	for (s = c->op->lo; s <= c->op->hi; s++)
		if (model_equal(&c->l->states[s], entries, params->nr)) {
			found = true;
			break;
		}
	if (!found)
		violation(c, "what is found is no state that may be");
	if (clean && !c->op->may_be_clean)
		violation(c, "CLEAN without a close");
	pc_metadata_hints_of(md, &policy, &version);
	if (!hints_match(params, entries, policy, clean))
		violation(c, "hints are not of the policy that the superblock names");
	if (found && !c->quiet && unit_random_one_in(&c->r, 6))
		cut_again(c, params, &f, image, entries);
	if (found && !c->quiet && unit_random_one_in(&c->r, 6))
		live_on(c, &c->l->states[s], &f, md);
	else
		pc_metadata_free(md);
	free(entries);
	pc_metaio_close(&f);
}

/* Cuts everywhere, or, for a device that lies, until enough is found. */
static void cut_everywhere(struct check *c, u32 unit, struct powercut_lies lies, bool quiet)
{
	struct life *l = c->l;
	u8 *blank = calloc(l->f.io.nr_blocks, PC_META_BLOCK_SIZE);

	c->quiet = quiet;
	powercut_init(&c->cut, &l->f, blank, unit, lies);
	for (size_t o = 0; o < l->nr_ops; o++) {
		c->op = &l->ops[o];
		while (c->cut.next < c->op->end) {
			powercut_images(&c->cut, &c->r, check_image, c);
			powercut_advance(&c->cut);
			if (quiet && c->violations)
				goto out;
		}
	}
	/* and behind the last one: all that was acknowledged */
	c->op = &(struct op){ .kind = COMMIT, .lo = l->nr_states - 1, .hi = l->nr_states - 1,
			      .may_be_clean = l->closed };
	powercut_images(&c->cut, &c->r, check_image, c);
out:
	powercut_free(&c->cut);
	free(blank);
}

/* PC_LIVES=n does n times as much. */
static void run(u64 lives, int steps, u32 unit, u64 salt)
{
	const char *times = getenv("PC_LIVES");
	u64 events = 0, images = 0, second = 0;

	if (times)
		lives *= strtoull(times, NULL, 0);

	for (u64 i = 0; i < lives; i++) {
		struct life l;
		struct check c = { .l = &l };

		live(&l, salt + i, steps);
		unit_random_init(&c.r, "cut", salt + i);
		cut_everywhere(&c, unit, (struct powercut_lies){ 0 }, false);
		assert_int_equal(c.violations, 0);
		events += l.f.nr_events;
		images += c.images;
		second += c.second_cuts;
		die(&l);
	}
	printf("%llu writes and flushes, %llu images, %llu second cuts\n", events, images, second);
}

/* Logical blocks of 4096 bytes: each written whole or not. */
static void test_powercut_blocks(void **state)
{
	run(4, 30, 4096, 0);
}

/* Logical blocks of 512 bytes: metadata blocks torn in every way. */
static void test_powercut_sectors(void **state)
{
	run(2, 30, 512, 1000000);
}

static void expect_violation(struct powercut_lies lies, u64 salt)
{
	struct life l;
	struct check c = { .l = &l };

	live(&l, salt, 40);
	unit_random_init(&c.r, "lie", salt);
	cut_everywhere(&c, 4096, lies, true);
	assert_true(c.violations > 0);
	die(&l);
}

static void test_powercut_finds_lies(void **state)
{
	for (u64 i = 0; i < 3; i++) {
		expect_violation((struct powercut_lies){ .no_preflush = true }, 2000000 + i);
		expect_violation((struct powercut_lies){ .no_fua = true }, 2100000 + i);
		expect_violation((struct powercut_lies){ .no_flush = true }, 2200000 + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_powercut_blocks),
		cmocka_unit_test(test_powercut_sectors),
		cmocka_unit_test(test_powercut_finds_lies),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
