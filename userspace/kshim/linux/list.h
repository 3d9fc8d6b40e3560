/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: doubly linked lists, the part that we use. */
#ifndef KSHIM_LINUX_LIST_H
#define KSHIM_LINUX_LIST_H

#include <linux/types.h>
#include <linux/container_of.h>

#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l;
	l->prev = l;
}

static inline void pc_shim_list_link(struct list_head *a, struct list_head *b)
{
	a->next = b;
	b->prev = a;
}

static inline void list_add(struct list_head *n, struct list_head *head)
{
	pc_shim_list_link(n, head->next);
	pc_shim_list_link(head, n);
}

static inline void list_add_tail(struct list_head *n, struct list_head *head)
{
	pc_shim_list_link(head->prev, n);
	pc_shim_list_link(n, head);
}

static inline void list_del(struct list_head *n)
{
	pc_shim_list_link(n->prev, n->next);
	n->next = NULL;
	n->prev = NULL;
}

static inline void list_del_init(struct list_head *n)
{
	pc_shim_list_link(n->prev, n->next);
	INIT_LIST_HEAD(n);
}

static inline int list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline int list_is_last(const struct list_head *n, const struct list_head *head)
{
	return n->next == head;
}

static inline void list_move(struct list_head *n, struct list_head *head)
{
	pc_shim_list_link(n->prev, n->next);
	list_add(n, head);
}

static inline void list_move_tail(struct list_head *n, struct list_head *head)
{
	pc_shim_list_link(n->prev, n->next);
	list_add_tail(n, head);
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *head)
{
	if (list_empty(from))
		return;
	pc_shim_list_link(head->prev, from->next);
	pc_shim_list_link(from->prev, head);
	INIT_LIST_HEAD(from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_last_entry(head, type, member) list_entry((head)->prev, type, member)
#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_next_entry(pos, member) list_entry((pos)->member.next, __typeof__(*(pos)), member)
#define list_prev_entry(pos, member) list_entry((pos)->member.prev, __typeof__(*(pos)), member)

#define list_for_each(pos, head) \
	for (pos = (head)->next; pos != (head); pos = pos->next)
#define list_for_each_entry(pos, head, member)					\
	for (pos = list_first_entry(head, __typeof__(*pos), member);		\
	     &pos->member != (head); pos = list_next_entry(pos, member))
#define list_for_each_entry_reverse(pos, head, member)				\
	for (pos = list_last_entry(head, __typeof__(*pos), member);		\
	     &pos->member != (head); pos = list_prev_entry(pos, member))
#define list_for_each_entry_safe(pos, n, head, member)				\
	for (pos = list_first_entry(head, __typeof__(*pos), member),		\
	     n = list_next_entry(pos, member);					\
	     &pos->member != (head); pos = n, n = list_next_entry(n, member))

#define INIT_HLIST_HEAD(h) ((h)->first = NULL)

static inline void INIT_HLIST_NODE(struct hlist_node *n)
{
	n->next = NULL;
	n->pprev = NULL;
}

static inline int hlist_unhashed(const struct hlist_node *n)
{
	return !n->pprev;
}

static inline int hlist_empty(const struct hlist_head *h)
{
	return !h->first;
}

static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	if (h->first)
		h->first->pprev = &n->next;
	h->first = n;
	n->pprev = &h->first;
}

static inline void hlist_del_init(struct hlist_node *n)
{
	if (!n->pprev)
		return;
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
	INIT_HLIST_NODE(n);
}

#define hlist_del(n) hlist_del_init(n)
#define hlist_entry_safe(ptr, type, member) ({				\
	__typeof__(ptr) p__ = (ptr);					\
	p__ ? container_of(p__, type, member) : NULL; })
#define hlist_for_each_entry(pos, head, member)				\
	for (pos = hlist_entry_safe((head)->first, __typeof__(*(pos)), member); pos; \
	     pos = hlist_entry_safe((pos)->member.next, __typeof__(*(pos)), member))

#endif
