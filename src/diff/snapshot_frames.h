/**
 * @file
 * The frames of a memory snapshot's stacks, of which a few name a block: those of
 * Python's before those of C++'s, and none of what every stack has, which is the
 * unwinder, the interpreter and the allocator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DIFF_SNAPSHOT_FRAMES_H
#define MEMEST_DIFF_SNAPSHOT_FRAMES_H

#include <stdint.h>

/** Frames, the worst first; classes of base/pickle.h. */
enum {
    ME_FRAME_LEFT_OUT = 0,
    ME_FRAME_OTHER = 1, /* of C++'s; of memest's own snapshots */
    ME_FRAME_PYTHON = 2
};

/** The class of a frame as far as its function's name says it, which is at most
 *  ME_FRAME_PYTHON. */
uint8_t me_frame_class_of_name(const char *name);

/** The class of a frame as far as its file's name says it. */
uint8_t me_frame_class_of_file(const char *file);

/** The class that the text behind a key says; ME_PICKLE_NO_CLASS for other keys
 *  than a frame's "name" and "filename". A frame is of the lower one of both. */
uint8_t me_frame_class(const char *key, const char *text);

#endif /* MEMEST_DIFF_SNAPSHOT_FRAMES_H */
