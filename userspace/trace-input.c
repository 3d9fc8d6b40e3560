// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bytes of a trace file (trace-input.h). The first bytes tell whether the file is
 * compressed. If not, it is read with read() straight into the buffer that lines are
 * given out of; else libarchive stands between, and is given the bytes that were read
 * already, so that a pipe can be compressed, too.
 *
 * libarchive is loaded when the first compressed file is met: it brings 40 MB of other
 * libraries with it, which the rest of the polycache command starts without.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include <linux/kernel.h>

#include "trace-input.h"

/* holds the longest line and more */
#define BUF_SIZE (4 * PC_INPUT_MAX_LINE)

static const struct {
	const char *bytes;
	size_t len;
} magics[] = {
	{ "\x1f\x8b", 2 },			/* gzip */
	{ "\xfd\67zXZ\0", 6 },			/* xz */
	{ "\x28\xb5\x2f\xfd", 4 },		/* zstd */
	{ "BZh", 3 },				/* bzip2 */
	{ "\x04\x22\x4d\x18", 4 },		/* lz4 */
};

#define LIBARCHIVE "libarchive.so.13"

/* What is used of it, with the types of its own header. */
static struct {
	bool loaded;
	__typeof__(archive_read_new) *create;
	__typeof__(archive_read_free) *free;
	__typeof__(archive_read_support_filter_all) *filter_all;
	__typeof__(archive_read_support_format_raw) *format_raw;
	__typeof__(archive_read_open) *open;
	__typeof__(archive_read_next_header) *next_header;
	__typeof__(archive_read_data) *data;
	__typeof__(archive_error_string) *error_string;
	__typeof__(archive_set_error) *set_error;
} lib;

static const struct {
	const char *name;
	void **to;
} functions[] = {
	{ "archive_read_new", (void **)&lib.create },
	{ "archive_read_free", (void **)&lib.free },
	{ "archive_read_support_filter_all", (void **)&lib.filter_all },
	{ "archive_read_support_format_raw", (void **)&lib.format_raw },
	{ "archive_read_open", (void **)&lib.open },
	{ "archive_read_next_header", (void **)&lib.next_header },
	{ "archive_read_data", (void **)&lib.data },
	{ "archive_error_string", (void **)&lib.error_string },
	{ "archive_set_error", (void **)&lib.set_error },
};

static bool load_library(struct pc_input *in)
{
	void *handle;

	if (lib.loaded)
		return true;
	handle = dlopen(LIBARCHIVE, RTLD_NOW);
	lib.loaded = handle;
	for (size_t i = 0; lib.loaded && i < ARRAY_SIZE(functions); i++) {
		*functions[i].to = dlsym(handle, functions[i].name);
		lib.loaded = *functions[i].to;
	}
	if (!lib.loaded)
		snprintf(in->error, sizeof(in->error),
			 "is compressed, and %s cannot be loaded: install the package libarchive13, or give it decompressed, as in 'xzcat FILE | polycache sim -'",
			 LIBARCHIVE);
	return lib.loaded;
}

static ssize_t read_file(struct pc_input *in, char *to, size_t size)
{
	ssize_t n;

	do
		n = read(in->fd, to, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		snprintf(in->error, sizeof(in->error), "%s", strerror(errno));
	else
		in->file_read += n;
	return n;
}

static la_ssize_t give_raw(struct archive *a, void *context, const void **out)
{
	struct pc_input *in = context;
	ssize_t n = in->raw_len;

	in->raw_len = 0;
	if (!n)
		n = read_file(in, in->raw, BUF_SIZE);
	if (n < 0)
		lib.set_error(a, errno, "%s", in->error);
	*out = in->raw;
	return n;
}

static bool fail_archive(struct pc_input *in)
{
	const char *why = lib.error_string(in->archive);

	snprintf(in->error, sizeof(in->error), "cannot be decompressed: %s",
		 why ? why : "the data is damaged or of an unknown kind");
	return false;
}

/* What was read so far becomes the decompressor's. */
static bool open_archive(struct pc_input *in)
{
	struct archive_entry *entry;

	if (!load_library(in))
		return false;
	in->raw = in->buf;
	in->raw_len = in->len;
	in->len = 0;
	in->buf = malloc(BUF_SIZE + 1);
	in->archive = lib.create();
	if (!in->buf || !in->archive) {
		snprintf(in->error, sizeof(in->error), "out of memory");
		return false;
	}
	/* a filter that is a program of its own makes a warning of it, which is none here */
	lib.filter_all(in->archive);
	lib.format_raw(in->archive);
	if (lib.open(in->archive, in, NULL, give_raw, NULL) != ARCHIVE_OK ||
	    lib.next_header(in->archive, &entry) != ARCHIVE_OK)
		return fail_archive(in);
	return true;
}

static ssize_t read_some(struct pc_input *in, char *to, size_t size)
{
	la_ssize_t n;

	if (!in->archive)
		return read_file(in, to, size);
	n = lib.data(in->archive, to, size);
	if (n < 0)
		fail_archive(in);
	return n;
}

/* Moves what is left to the front and reads on. False: nothing came. */
static bool fill(struct pc_input *in)
{
	ssize_t n;

	if (in->ended)
		return false;
	memmove(in->buf, in->buf + in->at, in->len - in->at);
	in->len -= in->at;
	in->at = 0;
	n = read_some(in, in->buf + in->len, BUF_SIZE - in->len);
	if (n <= 0)
		in->ended = true;
	else
		in->len += n;
	return n > 0;
}

static bool is_compressed(const struct pc_input *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if (in->len >= magics[i].len && !memcmp(in->buf, magics[i].bytes, magics[i].len))
			return true;
	return false;
}

bool pc_input_open(struct pc_input *in, const char *path)
{
	struct stat st;

	memset(in, 0, sizeof(*in));
	in->close_fd = strcmp(path, "-") != 0;
	in->fd = in->close_fd ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	in->buf = malloc(BUF_SIZE + 1);
	if (in->fd < 0 || !in->buf) {
		snprintf(in->error, sizeof(in->error), "%s", strerror(errno));
		return false;
	}
	if (!fstat(in->fd, &st) && S_ISREG(st.st_mode))
		in->file_size = st.st_size;
	/* a pipe may bring the first bytes one by one */
	while (in->len < 8 && fill(in))
		;
	if (in->error[0])
		return false;
	if (!is_compressed(in))
		return true;
	in->ended = false;
	return open_archive(in);
}

void pc_input_close(struct pc_input *in)
{
	if (in->archive)
		lib.free(in->archive);
	if (in->close_fd && in->fd >= 0)
		close(in->fd);
	free(in->raw);
	free(in->buf);
	memset(in, 0, sizeof(*in));
	in->fd = -1;
}

char *pc_input_line(struct pc_input *in)
{
	size_t seen = 0;
	char *line, *end;

	for (;;) {
		end = memchr(in->buf + in->at + seen, '\n', in->len - in->at - seen);
		if (end)
			break;
		seen = in->len - in->at;
		if (seen >= PC_INPUT_MAX_LINE) {
			snprintf(in->error, sizeof(in->error),
				 "a line is longer than %d bytes: this is no text",
				 PC_INPUT_MAX_LINE);
			return NULL;
		}
		if (!fill(in))
			break;
	}
	if (in->error[0] || (!end && !seen))
		return NULL;
	line = in->buf + in->at;
	if (!end)
		end = in->buf + in->len;
	in->at = end - in->buf;
	if (in->at < in->len)
		in->at++;
	if (end > line && end[-1] == '\r')
		end--;
	*end = 0;
	return line;
}

char *pc_input_record(struct pc_input *in, size_t size, size_t *got)
{
	while (in->len - in->at < size && fill(in))
		;
	*got = in->len - in->at;
	if (in->error[0] || *got < size)
		return NULL;
	*got = size;
	in->at += size;
	return in->buf + in->at - size;
}

size_t pc_input_peek(struct pc_input *in, size_t size, const char **at)
{
	while (in->len - in->at < size && fill(in))
		;
	*at = in->buf + in->at;
	return in->len - in->at < size ? in->len - in->at : size;
}
