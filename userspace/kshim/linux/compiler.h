/* SPDX-License-Identifier: GPL-2.0-only */
/* kshim: attributes and annotations. */
#ifndef KSHIM_LINUX_COMPILER_H
#define KSHIM_LINUX_COMPILER_H

#ifdef __CHECKER__
#define __force __attribute__((force))
#else
#define __force
#endif

#define __packed	__attribute__((packed))
#define __aligned(n)	__attribute__((aligned(n)))
#define __maybe_unused	__attribute__((unused))
#define __always_unused	__attribute__((unused))
#define __must_check	__attribute__((warn_unused_result))
#define __printf(f, a)	__attribute__((format(printf, f, a)))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define noinline	__attribute__((noinline))
#define fallthrough	__attribute__((fallthrough))
#define __init
#define __exit

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define barrier()	__asm__ __volatile__("" : : : "memory")
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#endif
