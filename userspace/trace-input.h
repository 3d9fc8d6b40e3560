/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bytes of a trace file, compressed or not, as lines or as records of fixed size.
 */
#ifndef PC_TRACE_INPUT_H
#define PC_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a line may not be longer, its end included */
#define PC_INPUT_MAX_LINE 65536

struct archive;

struct pc_input {
	int fd;
	bool close_fd;
	bool ended;		/* nothing more comes from fd */
	struct archive *archive;	/* NULL: the file is not compressed */
	char *raw;		/* what the decompressor is given */
	size_t raw_len;
	char *buf;
	size_t at, len;		/* buf[at .. len) was not given out yet */
	uint64_t file_size;	/* 0: not known, as of a pipe */
	uint64_t file_read;
	char error[256];	/* "" while all is well */
};

/* path "-" is the standard input. False: the reason is in error. Close it anyway. */
bool pc_input_open(struct pc_input *in, const char *path);
void pc_input_close(struct pc_input *in);

/*
 * The next line, its end cut off and zero-terminated; or NULL at the end of the file or
 * after an error. It may be changed, and lives until the next call.
 */
char *pc_input_line(struct pc_input *in);

/*
 * The next size bytes (below PC_INPUT_MAX_LINE), or NULL. *got: how many there are,
 * also when they are fewer and the answer is NULL.
 */
char *pc_input_record(struct pc_input *in, size_t size, size_t *got);

/* Up to size bytes of what comes next, without taking them. Returns how many. */
size_t pc_input_peek(struct pc_input *in, size_t size, const char **at);

#endif
