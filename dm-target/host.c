// SPDX-License-Identifier: GPL-2.0-only
/*
 * [K] The host that runs one policy for one device (host.h).
 *
 * The host owns the one policy lock, under which every operation of the
 * policy runs but create, destroy and loaded, and a bit a cblock that says what the
 * policy holds, so that a policy is told of insertions and removals in turns whatever
 * the core does. Hits go into a ring of the CPU, to which that CPU alone adds, with
 * interrupts off and without a lock, and from there in one go to the policy: from the
 * half full ring on at every eighth hit, if the policy lock is free, so that nobody waits
 * for it with a shard locked but where the ring is full. Nothing is dropped and the order
 * of a CPU is kept.
 *
 * With the policy name auto the one at work is one of several candidates, of which
 * auto.c keeps small shadows under the same lock; who should work instead is asked
 * every second.
 */
#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "broken.h"
#include "candidates.h"
#include "host.h"
#include "registry.h"

#define NR_HITS 64u
/* of these, as many are on their way to the CPU's cache while one is told */
#define HITS_AHEAD 8u
/* blocks moved from policy to policy under the lock at a time: well below 1 ms */
#define SWAP_SLICE 256u

struct hit {
	u64 oblock;
	u32 cblock;
	u32 dir;
};

/* Head and tail count on; the slot is what is left by NR_HITS. */
struct hit_ring {
	unsigned int head;		/* where the CPU adds: its own, interrupts off */
	unsigned int tail;		/* what comes out next: under the policy lock */
	struct hit hits[NR_HITS];	/* from tail to head: the policy lock's, else the CPU's */
};

struct pc_policy_host {
	spinlock_t lock;		/* the policy lock */
	struct pc_policy *policy;	/* under lock, as all that it does */
	struct pc_swap *swap;		/* under lock; NULL: no exchange is running */
	struct pc_candidates *candidates;	/* under lock; NULL: not auto */
	bool tuned;			/* under lock: a key of policy was set */
	unsigned long *held;		/* under lock; bit a cblock: the policy holds it */
	struct hit_ring __percpu *rings;
	struct mutex swap_mutex;	/* held by the exchange that is running */
	struct pc_policy_params params;
};

static size_t held_bytes(const struct pc_policy_host *host)
{
	return BITS_TO_LONGS((unsigned long)host->params.nr_cblocks) * sizeof(long);
}

/* Says what set() refused. emitted: what emit() says, the keys being every other word. */
static int refuse(int r, const char *key, const char *value, const char *why, const char *name,
		  char *emitted, char err[PC_ERR_SIZE])
{
	bool is_key = true;
	size_t len;
	char *word;

	if (r == -ERANGE) {
		scnprintf(err, PC_ERR_SIZE, "%.32s %.32s: must be %s", key, value, why);
		return -EINVAL;
	}
	len = scnprintf(err, PC_ERR_SIZE,
			"%.32s: neither a key of the core nor of policy %s, which knows:%s", key,
			name, *emitted ? "" : " none");
	while ((word = strsep(&emitted, " "))) {
		if (is_key && *word)
			len += scnprintf(err + len, PC_ERR_SIZE - len, " %s", word);
		is_key = !is_key;
	}
	return -EINVAL;
}

static int set_policy(struct pc_policy *p, const char *key, const char *value,
		      char err[PC_ERR_SIZE])
{
	char emitted[PC_POLICY_EMIT_SIZE] = "";
	const char *why = "another value";
	int r = -EINVAL;

	if (p->type->set)
		r = p->type->set(p, key, value, &why);
	if (!r)
		return 0;
	if (p->type->emit)
		p->type->emit(p, emitted, sizeof(emitted));
	return refuse(r, key, value, why, p->type->name, emitted, err);
}

static int set_auto(struct pc_candidates *c, const char *key, const char *value,
		    char err[PC_ERR_SIZE])
{
	char emitted[PC_POLICY_EMIT_SIZE];
	const char *why;
	int r = pc_auto_set(c->shadows, key, value, &why);

	if (!r)
		return 0;
	pc_auto_emit(c->shadows, emitted, sizeof(emitted));
	return refuse(r, key, value, why, PC_POLICY_AUTO, emitted, err);
}

static void put_policy(struct pc_policy *p)
{
	struct pc_policy_type *type = (struct pc_policy_type *)p->type;

	type->destroy(p);
	pc_registry_put(type);
}

/* A new instance that nobody else knows yet. ERR_PTR, with err filled. */
static struct pc_policy *make_policy(const struct pc_policy_params *params, const char *name,
				     const struct pc_pair *pairs, unsigned int nr_pairs,
				     bool may_load, char err[PC_ERR_SIZE])
{
	struct pc_policy_type *type = pc_registry_get(name, may_load);
	struct pc_policy *p;
	unsigned int i;
	int r;

	if (IS_ERR(type)) {
		scnprintf(err, PC_ERR_SIZE, "policy %.16s: %s module dm-polycache-%.16s; loaded:",
			  name, may_load ? "there is no" : "load first the", pc_registry_resolve(name));
		pc_registry_list(err, PC_ERR_SIZE);
		return ERR_CAST(type);
	}

	p = PC_BREAK_POLICY_MEMORY ? NULL : type->create(type, params);
	if (!p) {
		scnprintf(err, PC_ERR_SIZE, "policy %s: no memory for %u cache blocks", type->name,
			  params->nr_cblocks);
		pc_registry_put(type);
		return ERR_PTR(-ENOMEM);
	}

	for (i = 0; i < nr_pairs; i++) {
		r = set_policy(p, pairs[i].key, pairs[i].value, err);
		if (r) {
			put_policy(p);
			return ERR_PTR(r);
		}
	}
	return p;
}

/* The policies to choose from, if name is auto, else NULL. ERR_PTR, with err filled. */
static struct pc_candidates *make_candidates(const struct pc_policy_params *params,
					     const char *name, const struct pc_pair *pairs,
					     unsigned int nr_pairs, bool may_load,
					     char err[PC_ERR_SIZE])
{
	struct pc_candidates *c;
	unsigned int i;
	int r;

	if (strcmp(name, PC_POLICY_AUTO) != 0)
		return NULL;
	c = pc_candidates_make(params, may_load, err, &r);
	if (!c)
		return ERR_PTR(r);
	for (i = 0; i < nr_pairs; i++) {
		r = set_auto(c, pairs[i].key, pairs[i].value, err);
		if (r) {
			pc_candidates_put(c);
			return ERR_PTR(r);
		}
	}
	return c;
}

struct pc_policy_host *pc_host_create(const struct pc_policy_params *params, const char *name,
				      const struct pc_pair *pairs, unsigned int nr_pairs,
				      bool may_load, char err[PC_ERR_SIZE], int *error)
{
	struct pc_candidates *candidates;
	struct pc_policy_host *host;
	struct pc_policy *policy;

	candidates = make_candidates(params, name, pairs, nr_pairs, may_load, err);
	if (IS_ERR(candidates)) {
		*error = PTR_ERR(candidates);
		return NULL;
	}
	if (candidates)
		policy = make_policy(params, candidates->types[0]->name, NULL, 0, false, err);
	else
		policy = make_policy(params, name, pairs, nr_pairs, may_load, err);
	if (IS_ERR(policy)) {
		*error = PTR_ERR(policy);
		pc_candidates_put(candidates);
		return NULL;
	}

	host = kzalloc(sizeof(*host), GFP_KERNEL);
	if (!host)
		goto no_host;
	host->params = *params;
	host->policy = policy;
	host->candidates = candidates;
	host->tuned = nr_pairs;
	spin_lock_init(&host->lock);
	mutex_init(&host->swap_mutex);

	host->held = vzalloc(held_bytes(host));
	if (!host->held)
		goto no_held;
	host->rings = alloc_percpu(struct hit_ring);
	if (!host->rings)
		goto no_rings;
	return host;

no_rings:
	vfree(host->held);
no_held:
	mutex_destroy(&host->swap_mutex);
	kfree(host);
no_host:
	scnprintf(err, PC_ERR_SIZE, "policy %s: no memory for %u cache blocks",
		  policy->type->name, params->nr_cblocks);
	put_policy(policy);
	pc_candidates_put(candidates);
	*error = -ENOMEM;
	return NULL;
}

void pc_host_destroy(struct pc_policy_host *host)
{
	put_policy(host->policy);
	pc_candidates_put(host->candidates);
	free_percpu(host->rings);
	vfree(host->held);
	mutex_destroy(&host->swap_mutex);
	kfree(host);
}

void pc_host_load(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o, bool dirty,
		  bool has_hint, u32 hint)
{
	struct pc_policy *p = host->policy;
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	if (!__test_and_set_bit(pc_from_cblock(c), host->held))
		p->type->load(p, c, o, dirty, has_hint, hint);
	spin_unlock_irqrestore(&host->lock, flags);
}

void pc_host_loaded(struct pc_policy_host *host)
{
	struct pc_policy *p = host->policy;

	might_sleep();
	if (p->type->loaded)
		p->type->loaded(p);
}

/* Hits */

static void expect_hit(struct pc_policy *p, const struct hit_ring *ring, unsigned int i)
{
	p->type->expect(p, pc_cblock(ring->hits[i % NR_HITS].cblock));
}

static void drain_ring(struct pc_policy_host *host, struct hit_ring *ring)
{
	struct pc_policy *p = host->policy;
	unsigned int head, tail, ahead;

	lockdep_assert_held(&host->lock);

	/* pairs with the release in add_hit: what is counted is there */
	head = smp_load_acquire(&ring->head);
	for (ahead = tail = ring->tail; tail != head; tail++) {
		const struct hit *hit = ring->hits + tail % NR_HITS;
		pc_cblock_t c = pc_cblock(hit->cblock);
		pc_oblock_t o = pc_oblock(hit->oblock);

		for (; p->type->expect && ahead != head && ahead - tail <= HITS_AHEAD; ahead++)
			expect_hit(p, ring, ahead);
		if (host->candidates)
			pc_auto_access(host->candidates->shadows, o, hit->dir);
		/* gone since: the policy would ignore it too */
		if (!test_bit(hit->cblock, host->held))
			continue;
		p->type->hit(p, c, o, hit->dir);
		if (host->swap)
			pc_swap_hit(host->swap, c, o, hit->dir);
	}
	/* pairs with the acquire in add_hit */
	smp_store_release(&ring->tail, tail);
}

/* Into the ring of this CPU. Returns what it holds now, or 0: it is full. */
static unsigned int add_hit(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o,
			    enum pc_dir dir)
{
	struct hit_ring *ring;
	unsigned int head, nr;
	struct hit *hit;

	/* interrupts are off, but with PREEMPT_RT */
	preempt_disable();
	ring = this_cpu_ptr(host->rings);
	head = ring->head;
	/* pairs with the release in drain_ring: what is free was read */
	nr = head + 1 - smp_load_acquire(&ring->tail);
	if (likely(nr <= NR_HITS)) {
		hit = ring->hits + head % NR_HITS;
		hit->oblock = pc_from_oblock(o);
		hit->cblock = pc_from_cblock(c);
		hit->dir = dir;
		/* pairs with the acquire in drain_ring */
		smp_store_release(&ring->head, head + 1);
	} else {
		nr = 0;
	}
	preempt_enable();
	return nr;
}

bool pc_host_hit(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o, enum pc_dir dir)
{
	unsigned int nr;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		lockdep_assert_irqs_disabled();
	while (unlikely(!(nr = add_hit(host, c, o, dir)))) {
		spin_lock(&host->lock);
		drain_ring(host, this_cpu_ptr(host->rings));
		spin_unlock(&host->lock);
	}
	return nr >= NR_HITS / 2 && nr % (NR_HITS / 8) == 0;
}

void pc_host_pass_hits(struct pc_policy_host *host)
{
	unsigned long flags;

	if (!spin_trylock_irqsave(&host->lock, flags))
		return;
	drain_ring(host, this_cpu_ptr(host->rings));
	spin_unlock_irqrestore(&host->lock, flags);
}

void pc_host_drain(struct pc_policy_host *host)
{
	unsigned long flags;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hit_ring *ring = per_cpu_ptr(host->rings, cpu);

		if (READ_ONCE(ring->head) == READ_ONCE(ring->tail))
			continue;
		spin_lock_irqsave(&host->lock, flags);
		drain_ring(host, ring);
		spin_unlock_irqrestore(&host->lock, flags);
	}
}

/* Misses, insertions, removals */

enum pc_verdict pc_host_miss(struct pc_policy_host *host, pc_oblock_t o, enum pc_dir dir,
			     unsigned int flags)
{
	enum pc_verdict verdict = PC_BYPASS;
	unsigned long irq;

	spin_lock_irqsave(&host->lock, irq);
	drain_ring(host, this_cpu_ptr(host->rings));
	if (host->candidates && !flags)
		pc_auto_access(host->candidates->shadows, o, dir);
	if (!host->swap)
		verdict = host->policy->type->miss(host->policy, o, dir, flags);
	spin_unlock_irqrestore(&host->lock, irq);
	return verdict;
}

void pc_host_inserted(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o)
{
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	if (!__test_and_set_bit(pc_from_cblock(c), host->held)) {
		host->policy->type->inserted(host->policy, c, o);
		if (host->swap)
			pc_swap_inserted(host->swap, c, o);
	}
	spin_unlock_irqrestore(&host->lock, flags);
}

void pc_host_removed(struct pc_policy_host *host, pc_cblock_t c, pc_oblock_t o)
{
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	if (__test_and_clear_bit(pc_from_cblock(c), host->held)) {
		host->policy->type->removed(host->policy, c, o);
		if (host->swap)
			pc_swap_removed(host->swap, c, o);
	}
	spin_unlock_irqrestore(&host->lock, flags);
}

unsigned int pc_host_victims(struct pc_policy_host *host, unsigned int n, pc_cblock_t *out)
{
	unsigned long flags;
	unsigned int got;

	pc_host_drain(host);
	spin_lock_irqsave(&host->lock, flags);
	got = host->policy->type->victims(host->policy, n, out);
	spin_unlock_irqrestore(&host->lock, flags);
	return got;
}

void pc_host_tick(struct pc_policy_host *host)
{
	unsigned long flags;

	pc_host_drain(host);
	spin_lock_irqsave(&host->lock, flags);
	if (host->policy->type->tick)
		host->policy->type->tick(host->policy);
	spin_unlock_irqrestore(&host->lock, flags);
}

u32 pc_host_hint(struct pc_policy_host *host, pc_cblock_t c)
{
	unsigned long flags;
	u32 hint;

	spin_lock_irqsave(&host->lock, flags);
	hint = host->policy->type->hint(host->policy, c);
	spin_unlock_irqrestore(&host->lock, flags);
	return hint;
}

/* Tunables and names */

int pc_host_set(struct pc_policy_host *host, const char *key, const char *value,
		char err[PC_ERR_SIZE])
{
	unsigned long flags;
	int r;

	spin_lock_irqsave(&host->lock, flags);
	if (host->swap) {
		scnprintf(err, PC_ERR_SIZE, "%.32s %.32s: policies are being exchanged, try again",
			  key, value);
		r = -EBUSY;
	} else if (host->candidates) {
		r = set_auto(host->candidates, key, value, err);
	} else {
		r = set_policy(host->policy, key, value, err);
		host->tuned |= !r;
	}
	spin_unlock_irqrestore(&host->lock, flags);
	return r;
}

/* Under the policy lock. */
static void copy_name(struct pc_policy_host *host, char name[PC_POLICY_NAME_SIZE])
{
	strscpy(name, host->candidates ? PC_POLICY_AUTO : host->policy->type->name,
		PC_POLICY_NAME_SIZE);
}

unsigned int pc_host_emit(struct pc_policy_host *host, char name[PC_POLICY_NAME_SIZE], char *buf,
			  size_t len)
{
	unsigned int words = 0;
	unsigned long flags;

	*buf = '\0';
	spin_lock_irqsave(&host->lock, flags);
	copy_name(host, name);
	if (host->candidates)
		words = pc_auto_emit(host->candidates->shadows, buf, len);
	else if (host->policy->type->emit)
		words = host->policy->type->emit(host->policy, buf, len);
	spin_unlock_irqrestore(&host->lock, flags);
	return words;
}

void pc_host_name(struct pc_policy_host *host, char name[PC_POLICY_NAME_SIZE])
{
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	copy_name(host, name);
	spin_unlock_irqrestore(&host->lock, flags);
}

u32 pc_host_working(struct pc_policy_host *host, char name[PC_POLICY_NAME_SIZE])
{
	unsigned long flags;
	u32 version;

	spin_lock_irqsave(&host->lock, flags);
	strscpy(name, host->policy->type->name, PC_POLICY_NAME_SIZE);
	version = host->policy->type->version;
	spin_unlock_irqrestore(&host->lock, flags);
	return version;
}

u32 pc_host_flags(struct pc_policy_host *host)
{
	unsigned long irq;
	u32 flags;

	spin_lock_irqsave(&host->lock, irq);
	flags = host->policy->type->flags;
	spin_unlock_irqrestore(&host->lock, irq);
	return flags;
}

size_t pc_host_policy_memory(struct pc_policy_host *host)
{
	unsigned long flags;
	size_t bytes;

	spin_lock_irqsave(&host->lock, flags);
	bytes = host->policy->type->memory(host->policy);
	if (host->candidates)
		bytes += pc_auto_memory(host->candidates->shadows);
	spin_unlock_irqrestore(&host->lock, flags);
	return bytes;
}

size_t pc_host_stats(struct pc_policy_host *host, char *buf, size_t size)
{
	unsigned long flags;
	size_t len = 0;

	spin_lock_irqsave(&host->lock, flags);
	if (host->candidates)
		len = pc_candidates_stats(host->candidates, buf, size);
	spin_unlock_irqrestore(&host->lock, flags);
	return len;
}

/* Exchange */

/* One slice. True: the new policy is at work, and what swap says is the old one's. */
static bool swap_slice(struct pc_policy_host *host, struct pc_swap *swap,
		       pc_swap_lookup_fn lookup, void *ctx)
{
	unsigned long flags;
	bool done;

	spin_lock_irqsave(&host->lock, flags);
	done = pc_swap_step(swap, SWAP_SLICE, lookup, ctx);
	if (done) {
		host->policy = swap->new;
		host->held = swap->loaded;
		WRITE_ONCE(host->swap, NULL);
	}
	spin_unlock_irqrestore(&host->lock, flags);
	return done;
}

static int run_swap(struct pc_policy_host *host, struct pc_policy *new,
		    pc_swap_lookup_fn lookup, void *ctx, char err[PC_ERR_SIZE])
{
	struct pc_policy *old = host->policy;
	unsigned long *held = host->held;
	unsigned long *loaded = PC_BREAK_EXCHANGE_MEMORY ? NULL : vzalloc(held_bytes(host));
	struct pc_swap *swap = kmalloc(sizeof(*swap), GFP_KERNEL);
	unsigned long flags;

	if (!loaded || !swap) {
		scnprintf(err, PC_ERR_SIZE, "policy %s: no memory for the exchange, %s stays",
			  new->type->name, old->type->name);
		kfree(swap);
		vfree(loaded);
		return -ENOMEM;
	}

	pc_host_drain(host);
	pc_swap_init(swap, old, new, host->params.nr_cblocks, held, loaded);
	spin_lock_irqsave(&host->lock, flags);
	WRITE_ONCE(host->swap, swap);
	spin_unlock_irqrestore(&host->lock, flags);

	while (!swap_slice(host, swap, lookup, ctx))
		cond_resched();

	put_policy(old);
	kfree(swap);
	vfree(held);
	return 0;
}

/* Puts other candidates in place, or none: from now on the host is auto, or not. */
static void exchange_candidates(struct pc_policy_host *host, struct pc_candidates *new,
				bool tuned)
{
	struct pc_candidates *old;
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	old = host->candidates;
	host->candidates = new;
	host->tuned = tuned;
	if (new)
		pc_auto_working(new->shadows, pc_candidates_find(new, host->policy->type->name));
	spin_unlock_irqrestore(&host->lock, flags);
	pc_candidates_put(old);
}

/* Another policy at work, made of name and pairs. Under swap_mutex. */
static int swap_policy(struct pc_policy_host *host, const char *name, const struct pc_pair *pairs,
		       unsigned int nr_pairs, bool may_load, pc_swap_lookup_fn lookup, void *ctx,
		       char err[PC_ERR_SIZE])
{
	/* policy and held change only under swap_mutex: this task may read them */
	struct pc_policy *new = make_policy(&host->params, name, pairs, nr_pairs, may_load, err);
	int r = PTR_ERR_OR_ZERO(new);

	if (r)
		return r;
	r = run_swap(host, new, lookup, ctx, err);
	if (r)
		put_policy(new);
	return r;
}

int pc_host_swap(struct pc_policy_host *host, const char *name, const struct pc_pair *pairs,
		 unsigned int nr_pairs, bool may_load, pc_swap_lookup_fn lookup, void *ctx,
		 char err[PC_ERR_SIZE])
{
	struct pc_candidates *candidates;
	int r = 0;

	if (!mutex_trylock(&host->swap_mutex)) {
		scnprintf(err, PC_ERR_SIZE, "policy %.16s: policies are being exchanged, try again",
			  name);
		return -EBUSY;
	}

	candidates = make_candidates(&host->params, name, pairs, nr_pairs, may_load, err);
	if (IS_ERR(candidates)) {
		r = PTR_ERR(candidates);
		goto out;
	}
	if (!candidates)
		r = swap_policy(host, name, pairs, nr_pairs, may_load, lookup, ctx, err);
	else if (pc_candidates_find(candidates, host->policy->type->name) < 0 ||
		 (!host->candidates && READ_ONCE(host->tuned)))
		/* the one at work stays, if it is one of them and as they come */
		r = swap_policy(host, candidates->types[0]->name, NULL, 0, false, lookup, ctx, err);
	if (r)
		pc_candidates_put(candidates);
	else
		exchange_candidates(host, candidates, nr_pairs);
out:
	mutex_unlock(&host->swap_mutex);
	return r;
}

/* The candidate that should be at work instead, or -1. */
static int choice(struct pc_policy_host *host)
{
	unsigned long flags;
	int i = -1;

	spin_lock_irqsave(&host->lock, flags);
	if (host->candidates)
		i = pc_auto_choice(host->candidates->shadows);
	spin_unlock_irqrestore(&host->lock, flags);
	return i;
}

/* Candidate i took over: text says why. Under swap_mutex, which keeps the candidates. */
static void note_exchange(struct pc_policy_host *host, int i, char text[PC_ERR_SIZE])
{
	struct pc_candidates *c = host->candidates;
	const struct pc_auto_entry *e;
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	pc_auto_exchanged(c->shadows, i);
	e = pc_auto_log(c->shadows, 0);
	scnprintf(text, PC_ERR_SIZE,
		  "policy auto: %s takes over from %s: hits %u instead of %u of 1000 sampled accesses",
		  c->types[e->to]->name, c->types[e->from]->name, e->to_hits, e->from_hits);
	spin_unlock_irqrestore(&host->lock, flags);
}

/* The policy at work stays: the choice waits anew. */
static void note_failure(struct pc_policy_host *host)
{
	struct pc_auto *shadows = host->candidates->shadows;
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	pc_auto_working(shadows, pc_auto_index(shadows));
	spin_unlock_irqrestore(&host->lock, flags);
}

int pc_host_follow(struct pc_policy_host *host, pc_swap_lookup_fn lookup, void *ctx,
		   char text[PC_ERR_SIZE])
{
	int i, r = 0;

	/* a message exchanges it now: then it is too late for this one */
	if (choice(host) < 0 || !mutex_trylock(&host->swap_mutex))
		return 0;
	i = choice(host);
	if (i >= 0) {
		r = swap_policy(host, host->candidates->types[i]->name, NULL, 0, false, lookup,
				ctx, text);
		if (r) {
			note_failure(host);
		} else {
			note_exchange(host, i, text);
			r = 1;
		}
	}
	mutex_unlock(&host->swap_mutex);
	return r;
}

bool pc_host_begin_with(struct pc_policy_host *host, const char *name, u32 version)
{
	struct pc_policy *old = host->policy, *new;
	char ignored[PC_ERR_SIZE];
	int i;

	might_sleep();
	if (!strcmp(old->type->name, name))
		return old->type->version == version;
	i = host->candidates ? pc_candidates_find(host->candidates, name) : -1;
	if (i < 0 || host->candidates->types[i]->version != version)
		return false;
	new = make_policy(&host->params, name, NULL, 0, false, ignored);
	if (IS_ERR(new))
		return false;
	spin_lock_irq(&host->lock);
	host->policy = new;
	pc_auto_working(host->candidates->shadows, i);
	spin_unlock_irq(&host->lock);
	put_policy(old);
	return true;
}
