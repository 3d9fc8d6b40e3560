// SPDX-License-Identifier: GPL-2.0-only
/*
 * [S] The rules of pending.h: who may write where, and what a record says.
 *
 * Pure functions of a block and its pending object under the shard's lock. This
 * file holds what DESIGN section 6 calls composition (rule 12), weakening (rule
 * 10) and the three write conditions (rules 9 and 25); it is where a wrong line
 * loses data, so tests/unit/test-pending.c plays it against a model of two devices
 * with volatile caches and power cuts.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "broken.h"
#include "pending.h"

int pc_pendings_init(struct pc_pendings *ps, u32 nr)
{
	u32 i;

	memset(ps, 0, sizeof(*ps));
	ps->nr = nr;
	ps->pool = vzalloc(array_size(nr, sizeof(*ps->pool)));
	ps->used = vzalloc(BITS_TO_LONGS(nr) * sizeof(long));
	if (!ps->pool || !ps->used) {
		pc_pendings_exit(ps);
		return -ENOMEM;
	}
	ps->free_head = PC_NONE;
	for (i = nr; i-- > 0; ) {
		ps->pool[i].next_free = ps->free_head;
		ps->free_head = i;
	}
	ps->nr_free = nr;
	return 0;
}

void pc_pendings_exit(struct pc_pendings *ps)
{
	vfree(ps->pool);
	vfree(ps->used);
	ps->pool = NULL;
	ps->used = NULL;
}

size_t pc_pendings_memory(const struct pc_pendings *ps)
{
	return ps->nr * sizeof(*ps->pool) + BITS_TO_LONGS(ps->nr) * sizeof(long);
}

/* What the disk says of a block without a pending object: what memory says. */
static struct pc_disk disk_of_block(const struct pc_block *blk)
{
	struct pc_disk d = {
		.valid = blk->valid,
		.dirty = blk->dirty,
		.flags = blk->flags & (PC_BLOCK_MAPPED | PC_BLOCK_INTENTS),
	};

	return d;
}

struct pc_pending *pc_pending_alloc(struct pc_pendings *ps, struct pc_blocks *b,
				    struct pc_block *blk)
{
	u32 i = ps->free_head;
	struct pc_pending *p;

	if (i == PC_NONE)
		return NULL;
	p = &ps->pool[i];
	ps->free_head = p->next_free;
	ps->nr_free--;
	memset(p, 0, sizeof(*p));
	p->cblock = pc_from_cblock(pc_blocks_index(b, blk));
	p->shard = pc_blocks_shard(pc_blocks_oblock(blk));
	p->disk = disk_of_block(blk);
	blk->pending = i;
	__set_bit(i, ps->used);
	return p;
}

void pc_pending_free(struct pc_pendings *ps, struct pc_blocks *b, struct pc_pending *p)
{
	u32 i = p - ps->pool;
	struct pc_block *blk = &b->table[p->cblock];

	blk->flags = (blk->flags & ~PC_BLOCK_INTENTS) | (p->disk.flags & PC_BLOCK_INTENTS);
	blk->pending = PC_NONE;
	__clear_bit(i, ps->used);
	p->next_free = ps->free_head;
	ps->free_head = i;
	ps->nr_free++;
}

bool pc_pending_is_done(const struct pc_blocks *b, const struct pc_pending *p)
{
	const struct pc_block *blk = &b->table[p->cblock];

	return !p->busy && !p->frozen && !p->discarding && !p->copying && !p->uncleaned &&
	       !p->must && !p->want && !p->waiters_head &&
	       !(p->flags & ~(PC_PENDING_G_QUIET | PC_PENDING_URGENT)) &&
	       !(blk->flags & PC_BLOCK_DEMOTING) &&
	       (p->disk.flags & PC_BLOCK_MAPPED) == (blk->flags & PC_BLOCK_MAPPED) &&
	       p->disk.valid == blk->valid && p->disk.dirty == blk->dirty;
}

/* Calls of a predicate on each member: the durable record, and the one in a commit. */
#define FOR_EACH_MEMBER(m, n, set)	\
	for ((n) = 0; (n) < 2 && ((m) = (set)[n], (m)); (n)++)

static void members(const struct pc_block *blk, const struct pc_pending *p,
		    struct pc_disk *own, const struct pc_disk *set[2])
{
	set[1] = NULL;
	if (!p) {
		*own = disk_of_block(blk);
		set[0] = own;
		return;
	}
	set[0] = &p->disk;
	if (!PC_BREAK_RULE10 && (p->flags & PC_PENDING_COMPOSED))
		set[1] = &p->next;
}

/* Sub-blocks whose newest data this record places on the cache. */
static u64 cache_wins(const struct pc_disk *m)
{
	return m->flags & PC_BLOCK_INTENT_CACHE ? m->valid : m->dirty;
}

u64 pc_disk_any_valid(const struct pc_block *blk, const struct pc_pending *p)
{
	const struct pc_disk *set[2], *m;
	struct pc_disk own;
	u64 valid = 0;
	int n;

	members(blk, p, &own, set);
	FOR_EACH_MEMBER(m, n, set)
		valid |= m->valid;
	return valid;
}

u64 pc_disk_dropped(const struct pc_block *blk, const struct pc_pending *p)
{
	return p ? pc_disk_any_valid(blk, p) & ~blk->valid : 0;
}

u64 pc_disk_cache_wins(const struct pc_block *blk, const struct pc_pending *p)
{
	const struct pc_disk *set[2], *m;
	struct pc_disk own;
	u64 wins = ~0ULL;
	int n;

	members(blk, p, &own, set);
	FOR_EACH_MEMBER(m, n, set)
		wins &= cache_wins(m);
	return wins;
}

bool pc_disk_any_cache_wins(const struct pc_block *blk, const struct pc_pending *p)
{
	const struct pc_disk *set[2], *m;
	struct pc_disk own;
	int n;

	members(blk, p, &own, set);
	FOR_EACH_MEMBER(m, n, set)
		if (cache_wins(m))
			return true;
	return false;
}

/*
 * The cache copy alone: every record that calls the sub-block valid must say that
 * the cache is the newer one.
 */
u64 pc_disk_denies_cache_write(const struct pc_block *blk, const struct pc_pending *p)
{
	const struct pc_disk *set[2], *m;
	struct pc_disk own;
	u64 denied = 0;
	int n;

	members(blk, p, &own, set);
	FOR_EACH_MEMBER(m, n, set)
		denied |= m->valid & ~cache_wins(m);
	return PC_BREAK_RULE9 ? 0 : denied;
}

/* Both copies: either one may win, but one must, or a cut leaves them unequal. */
u64 pc_disk_denies_both_write(const struct pc_block *blk, const struct pc_pending *p)
{
	const struct pc_disk *set[2], *m;
	struct pc_disk own;
	u64 denied = 0;
	int n;

	members(blk, p, &own, set);
	FOR_EACH_MEMBER(m, n, set)
		if (!(m->flags & PC_BLOCK_INTENTS))
			denied |= m->valid & ~m->dirty;
	return PC_BREAK_RULE9 ? 0 : denied;
}

/* The origin alone: no record may give the cache copy to a reader after a cut. */
u64 pc_disk_denies_origin_write(const struct pc_block *blk, const struct pc_pending *p)
{
	const struct pc_disk *set[2], *m;
	struct pc_disk own;
	u64 denied = 0;
	int n;

	members(blk, p, &own, set);
	FOR_EACH_MEMBER(m, n, set)
		denied |= m->flags & PC_BLOCK_INTENT_ORIGIN ? m->dirty : m->valid;
	return denied;
}

void pc_pending_write_starts(struct pc_pending *p, u64 mask)
{
	if (!p)
		return;
	p->g_clean &= ~mask;
	p->flags &= ~PC_PENDING_G_QUIET;
	p->touched |= mask;
}

void pc_pending_drop(struct pc_block *blk, struct pc_pending *p, u64 mask)
{
	blk->valid &= ~mask;
	blk->dirty &= ~mask;
	if (!p)
		return;
	p->g_clean &= ~mask;
	p->g_dirty &= ~mask;
	p->durable &= ~mask;
	p->must &= ~mask;
	p->flags &= ~PC_PENDING_G_QUIET;
}

u64 pc_pending_needs_record(const struct pc_block *blk, const struct pc_pending *p, u64 mask)
{
	struct pc_disk d = p ? p->disk : disk_of_block(blk);

	return mask & ~cache_wins(&d);
}

void pc_pending_gather(const struct pc_blocks *b, struct pc_pending *p)
{
	const struct pc_block *blk = &b->table[p->cblock];

	p->flags &= ~(PC_PENDING_G_UNMAP | PC_PENDING_G_QUIET);
	p->g_dirty = p->g_clean = p->g_drop = 0;
	if (blk->flags & PC_BLOCK_DEMOTING) {
		p->flags |= PC_PENDING_G_UNMAP;
		return;
	}
	/* dirty is set at submission and cleared after a copy: it covers both in flight */
	p->g_dirty = blk->valid & blk->dirty;
	p->g_clean = blk->valid & ~blk->dirty & ~p->busy;
	p->g_drop = p->disk.valid & ~blk->valid;
	if (!blk->writes[0] && !blk->writes[1] && !p->busy && !p->copying)
		p->flags |= PC_PENDING_G_QUIET;
}

/* The intent flag of the new record. */
static u16 compose_intent(const struct pc_pending *p, bool flushed, bool may_intend)
{
	u16 intent = p->disk.flags & PC_BLOCK_INTENTS;
	bool change = p->want && intent && p->want != intent;

	/* both copies are equal and durable: nothing is left to decide */
	if (intent && flushed && (p->flags & PC_PENDING_G_QUIET) &&
	    ((p->flags & PC_PENDING_CLEAR) || change)) {
		intent = 0;
		may_intend = true;	/* it gives its place to the new kind */
	}
	if (!intent && p->want && may_intend)
		intent = p->want;
	return intent;
}

static void compose_mapped(const struct pc_block *blk, struct pc_pending *p, bool cache_ok,
			   bool origin_ok, bool may_intend)
{
	const struct pc_disk *d = &p->disk;
	bool flushed = cache_ok && origin_ok;
	u64 fresh = p->durable | (cache_ok ? p->g_dirty : 0);
	u64 clean = flushed ? p->g_clean & blk->valid & ~blk->dirty & ~p->busy : 0;
	u64 drop = p->g_drop & ~blk->valid;
	u16 intent = compose_intent(p, flushed, may_intend);

	/* a copy may be the newest data's only other place: durable there first */
	if (!origin_ok)
		drop &= ~cache_wins(d);
	/* an intent falls only with every valid sub-block settled */
	p->next.valid = (d->valid & ~drop) | ((fresh | clean) & blk->valid);
	p->next.dirty = p->next.valid & (blk->dirty | fresh | (d->dirty & ~clean));
	p->next.flags = PC_BLOCK_MAPPED | intent;
	/* a copy stays one that no flush has covered when its sub-block is dropped */
	if (origin_ok)
		p->uncleaned &= ~(p->g_clean | p->g_drop);
	/* written again since the copy: the next copy says it anew */
	p->uncleaned &= ~blk->dirty;
}

/* Is next worth a commit? */
static bool composed(struct pc_pending *p)
{
	if (p->next.valid != p->disk.valid || p->next.dirty != p->disk.dirty ||
	    p->next.flags != p->disk.flags) {
		p->flags |= PC_PENDING_COMPOSED;
		return true;
	}
	if (p->want == (p->disk.flags & PC_BLOCK_INTENTS))
		p->want = 0;
	return false;
}

/* No room under the cap: who waits asks again, and holds no object meanwhile. */
static void forgo_intent(struct pc_pending *p, bool may_intend)
{
	if (!may_intend && !(p->disk.flags & PC_BLOCK_INTENTS))
		p->want = 0;
}

bool pc_pending_compose(const struct pc_blocks *b, struct pc_pending *p, bool cache_ok,
			bool origin_ok, bool may_intend)
{
	const struct pc_block *blk = &b->table[p->cblock];

	forgo_intent(p, may_intend);
	if (blk->flags & PC_BLOCK_DEMOTING) {
		if (!(p->flags & PC_PENDING_G_UNMAP) || (!origin_ok && cache_wins(&p->disk)))
			p->next = p->disk;
		else
			memset(&p->next, 0, sizeof(p->next));
	} else {
		compose_mapped(blk, p, cache_ok, origin_ok, may_intend);
	}
	p->flags &= ~(PC_PENDING_G_UNMAP | PC_PENDING_G_QUIET);
	p->g_dirty = p->g_clean = p->g_drop = p->durable = 0;
	return composed(p);
}

bool pc_pending_compose_asked(const struct pc_blocks *b, struct pc_pending *p, bool may_intend)
{
	const struct pc_block *blk = &b->table[p->cblock];
	u64 durable = p->durable & blk->valid, drop;

	forgo_intent(p, may_intend);
	p->next = p->disk;
	if (blk->flags & PC_BLOCK_DEMOTING) {
		if (!cache_wins(&p->disk))
			memset(&p->next, 0, sizeof(p->next));
		return composed(p);
	}
	drop = p->disk.valid & ~blk->valid & ~cache_wins(&p->disk);
	p->next.valid = (p->disk.valid & ~drop) | durable;
	p->next.dirty = p->disk.dirty | durable;
	p->next.flags |= PC_BLOCK_MAPPED;
	if (p->want && !(p->disk.flags & PC_BLOCK_INTENTS))
		p->next.flags |= p->want;
	p->durable = 0;
	return composed(p);
}

void pc_pending_committed(struct pc_pending *p)
{
	u16 intent;

	p->disk = p->next;
	p->flags &= ~PC_PENDING_COMPOSED;
	p->must &= ~cache_wins(&p->disk);
	intent = p->disk.flags & PC_BLOCK_INTENTS;
	if (!intent)
		p->flags &= ~PC_PENDING_CLEAR;
	if (intent && intent == p->want)
		p->want = 0;
}
