// SPDX-License-Identifier: GPL-2.0-only
/*
 * kshim: the few kernel functions that do not fit into a header. With the headers
 * beside it, it lets the shared sources of dm-target/ and policies/ compile and run
 * in userspace. Not thread-safe: the shared sources have one caller at a time.
 */
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include <stdlib.h>

#define POISON_BYTES 16384

long pc_shim_alloc_countdown;
unsigned long pc_shim_allocs;
size_t pc_shim_alloc_bytes;

void *pc_shim_alloc(size_t n, size_t size, bool zero)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	if (pc_shim_alloc_countdown && !--pc_shim_alloc_countdown)
		return NULL;
	p = zero ? calloc(1, bytes ? bytes : 1) : malloc(bytes ? bytes : 1);
	if (!p)
		return NULL;
	/* fresh memory must not look initialised by chance; large buffers stay cheap */
	if (!zero)
		memset(p, 0xa5, bytes < POISON_BYTES ? bytes : POISON_BYTES);
	pc_shim_allocs++;
	pc_shim_alloc_bytes += bytes;
	return p;
}

void pc_shim_free(const void *p)
{
	free((void *)p);
}

void *kmemdup(const void *p, size_t size, gfp_t gfp)
{
	void *copy = kmalloc(size, gfp);

	return copy ? memcpy(copy, p, size) : NULL;
}

char *kstrdup(const char *s, gfp_t gfp)
{
	return s ? kmemdup(s, strlen(s) + 1, gfp) : NULL;
}

ssize_t strscpy(char *dst, const char *src, size_t size)
{
	size_t len = strnlen(src, size);

	if (!size)
		return -E2BIG;
	if (len == size) {
		memcpy(dst, src, size - 1);
		dst[size - 1] = 0;
		return -E2BIG;
	}
	memcpy(dst, src, len + 1);
	return len;
}

void *memchr_inv(const void *p, int c, size_t len)
{
	const u8 *b = p;

	for (; len; len--, b++)
		if (*b != (u8)c)
			return (void *)b;
	return NULL;
}

int match_string(const char *const *array, size_t n, const char *text)
{
	for (size_t i = 0; i < n && array[i]; i++)
		if (!strcmp(array[i], text))
			return i;
	return -EINVAL;
}

int vscnprintf(char *buf, size_t size, const char *fmt, va_list args)
{
	int n = vsnprintf(buf, size, fmt, args);

	if (n < 0 || !size)
		return 0;
	return (size_t)n < size ? n : (int)size - 1;
}

int scnprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vscnprintf(buf, size, fmt, args);
	va_end(args);
	return n;
}

static bool isxdigit_ascii(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* As the kernel's: optional plus sign, prefix by base, one newline at the end. */
int pc_shim_strtou(const char *s, unsigned int base, u64 max, u64 *res)
{
	u64 v = 0;
	int digits = 0;

	if (*s == '+')
		s++;
	if (s[0] == '0' && (s[1] | 0x20) == 'x' && isxdigit_ascii(s[2]) && (!base || base == 16)) {
		base = 16;
		s += 2;
	} else if (!base) {
		base = *s == '0' ? 8 : 10;
	}
	for (; *s && *s != '\n'; s++, digits++) {
		unsigned int d = 99;

		if (isxdigit_ascii(*s))
			d = *s <= '9' ? *s - '0' : (*s | 0x20) - 'a' + 10;
		if (d >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return -ERANGE;
	}
	if (!digits || (*s == '\n' && s[1]))
		return -EINVAL;
	if (v > max)
		return -ERANGE;
	*res = v;
	return 0;
}

/* Eight bytes a step: table[k] is the effect of a byte with k zero bytes behind it. */
static u32 crc_table[8][256];

static void __attribute__((constructor(101))) crc_init(void)
{
	for (u32 i = 0; i < 256; i++) {
		u32 c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
		crc_table[0][i] = c;
	}
	for (int k = 1; k < 8; k++)
		for (u32 i = 0; i < 256; i++) {
			u32 c = crc_table[k - 1][i];

			crc_table[k][i] = c >> 8 ^ crc_table[0][c & 255];
		}
}

u32 crc32c(u32 crc, const void *data, unsigned int len)
{
	const u8 *b = data;

	for (; len >= 8; len -= 8, b += 8) {
		__le64 raw;
		u64 v;
		u32 c = 0;

		memcpy(&raw, b, 8);
		v = le64_to_cpu(raw) ^ crc;
		for (int k = 7; k >= 0; k--, v >>= 8)
			c ^= crc_table[k][v & 255];
		crc = c;
	}
	while (len--)
		crc = crc >> 8 ^ crc_table[0][(u8)(crc ^ *b++)];
	return crc;
}
