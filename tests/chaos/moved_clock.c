/* Moves the hour of a process, while it runs: by the nanoseconds that are in the file which OTTLA_CHAOS_CLOCK names.
 * Preloaded (LD_PRELOAD), so any program can be treated so. Time that passes (CLOCK_MONOTONIC) is left alone, as it is
 * when the clock of a machine is set. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_ns;

__attribute__((constructor)) static void look_up(void) {
    const char *path = getenv("OTTLA_CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) ahead_ns = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (status || !ahead_ns || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return status;
    int64_t moved_ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + *ahead_ns;
    now->tv_sec = moved_ns / 1000000000;
    now->tv_nsec = moved_ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec found;
    int status = clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return status;
}

time_t time(time_t *into) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (into) *into = found.tv_sec;
    return found.tv_sec;
}
