// SPDX-License-Identifier: GPL-2.0-only
/*
 * The look-alike headers behave as the kernel's do, where the shared sources rely
 * on it. A header that lies would make every other unit test lie with it.
 */
#include <linux/bitops.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include "unit.h"

static void test_kshim_crc32c(void **state)
{
	/* the check value of CRC-32C, which inverts before and after */
	assert_int_equal(~crc32c(~0u, "123456789", 9), 0xe3069283u);
	/* in pieces or in one */
	assert_int_equal(crc32c(crc32c(~0u, "12345", 5), "678901234567890", 15),
			 crc32c(~0u, "12345678901234567890", 20));
}

static void test_kshim_kstrto(void **state)
{
	u32 v = 7;
	u64 w;

	assert_int_equal(kstrtou32("4294967295", 10, &v), 0);
	assert_int_equal(v, U32_MAX);
	assert_int_equal(kstrtou32("4294967296", 10, &v), -ERANGE);
	assert_int_equal(kstrtou64("18446744073709551616", 10, &w), -ERANGE);
	assert_int_equal(kstrtou32("", 10, &v), -EINVAL);
	assert_int_equal(kstrtou32("-1", 10, &v), -EINVAL);
	assert_int_equal(kstrtou32("12a", 10, &v), -EINVAL);
	assert_int_equal(kstrtou32("12\n", 10, &v), 0);
	assert_int_equal(v, 12);
	assert_int_equal(kstrtou32("0x1f", 0, &v), 0);
	assert_int_equal(v, 31);
}

static void test_kshim_bits(void **state)
{
	unsigned long map[3] = { 0 };

	__set_bit(0, map);
	__set_bit(63, map);
	__set_bit(130, map);
	assert_int_equal(find_first_bit(map, 192), 0);
	assert_int_equal(find_next_bit(map, 192, 1), 63);
	assert_int_equal(find_next_bit(map, 192, 64), 130);
	assert_int_equal(find_next_bit(map, 130, 64), 130);
	assert_int_equal(find_next_zero_bit(map, 192, 63), 64);
	assert_int_equal(fls64(0), 0);
	assert_int_equal(fls64(1), 1);
	assert_int_equal(ilog2(4096), 12);
	assert_int_equal(roundup_pow_of_two(5), 8);
	assert_int_equal(rounddown_pow_of_two(5), 4);
	assert_int_equal(round_up(13, 8), 16);
	assert_int_equal(roundup(13, 5), 15);
	assert_true(GENMASK_ULL(63, 0) == ~0ull);
	assert_int_equal(hweight64(GENMASK_ULL(40, 3)), 38);
}

static void test_kshim_strings(void **state)
{
	char buf[4];

	assert_int_equal(strscpy(buf, "abc", 4), 3);
	assert_int_equal(strscpy(buf, "abcd", 4), -E2BIG);
	assert_string_equal(buf, "abc");
	assert_int_equal(scnprintf(buf, sizeof(buf), "%s", "abcdef"), 3);
	assert_null(memchr_inv("aaaa", 'a', 4));
	assert_non_null(memchr_inv("aaba", 'a', 4));
}

static void test_kshim_alloc_countdown(void **state)
{
	void *a, *b;

	pc_shim_alloc_countdown = 2;
	a = kmalloc(10, GFP_KERNEL);
	b = kzalloc(10, GFP_KERNEL);
	assert_non_null(a);
	assert_null(b);
	b = kzalloc(10, GFP_KERNEL);
	assert_non_null(b);
	assert_null(memchr_inv(b, 0, 10));
	kfree(a);
	kfree(b);
	assert_null(kcalloc(SIZE_MAX / 2, 3, GFP_KERNEL));
}

static void test_kshim_list(void **state)
{
	struct item {
		int n;
		struct list_head list;
	} items[4], *i, *next;
	LIST_HEAD(a);
	LIST_HEAD(b);
	int sum = 0;

	for (int k = 0; k < 4; k++) {
		items[k].n = k;
		list_add_tail(&items[k].list, k < 2 ? &a : &b);
	}
	list_splice_tail_init(&b, &a);
	assert_true(list_empty(&b));
	list_move(&items[3].list, &a);
	assert_int_equal(list_first_entry(&a, struct item, list)->n, 3);
	assert_int_equal(list_last_entry(&a, struct item, list)->n, 2);
	list_for_each_entry_safe(i, next, &a, list) {
		sum = sum * 10 + i->n;
		list_del_init(&i->list);
	}
	assert_int_equal(sum, 3012);
	assert_true(list_empty(&a));
}

static void test_kshim_byteorder(void **state)
{
	u8 bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	__le64 v;

	memcpy(&v, bytes, 8);
	assert_true(le64_to_cpu(v) == 0x0807060504030201ull);
	assert_true(le64_to_cpu(cpu_to_le64(42)) == 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kshim_crc32c),
		cmocka_unit_test(test_kshim_kstrto),
		cmocka_unit_test(test_kshim_bits),
		cmocka_unit_test(test_kshim_strings),
		cmocka_unit_test(test_kshim_alloc_countdown),
		cmocka_unit_test(test_kshim_list),
		cmocka_unit_test(test_kshim_byteorder),
	};

	unit_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
