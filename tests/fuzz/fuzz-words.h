/* SPDX-License-Identifier: GPL-2.0-only */
/* What the fuzz entry points for words share: input bytes split at blanks and zeros. */
#ifndef PC_FUZZ_WORDS_H
#define PC_FUZZ_WORDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bug.h>
#include <linux/errno.h>

#define FUZZ_MAX_WORDS 256

struct fuzz_words {
	unsigned int count;
	char *words[FUZZ_MAX_WORDS];
};

/* Each word in memory of its own, so that a read beyond it is found. */
static inline void fuzz_words_split(struct fuzz_words *w, const uint8_t *data, size_t size)
{
	size_t i, begin = 0;

	w->count = 0;
	for (i = 0; i <= size && w->count < FUZZ_MAX_WORDS; i++) {
		if (i < size && data[i] != ' ' && data[i])
			continue;
		/* an empty word is possible: dmsetup passes what is quoted */
		if (i > begin || (i < size && !data[i])) {
			char *word = malloc(i - begin + 1);

			BUG_ON(!word);
			memcpy(word, data + begin, i - begin);
			word[i - begin] = 0;
			w->words[w->count++] = word;
		}
		begin = i + 1;
	}
}

static inline void fuzz_words_free(struct fuzz_words *w)
{
	while (w->count)
		free(w->words[--w->count]);
}

static inline void fuzz_words_check_result(int r, const char *err)
{
	const char *p;

	BUG_ON(r && r != -EINVAL);
	BUG_ON(!r != !*err);
	for (p = err; *p; p++)
		BUG_ON(*p < 0x20 || *p > 0x7e);
	/* no text was cut */
	BUG_ON(p - err >= PC_ERR_SIZE - 1);
}

#endif
