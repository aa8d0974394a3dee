/**
 * @file
 * Plain data written as JSON or as a pickle of protocol 2, of which PyTorch's
 * page (torch/utils/viz/MemoryViz.js) reads every operation that is used here.
 * What is written is the caller's business: a value where one belongs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_PLAIN_WRITER_H
#define MEMEST_REPORT_PLAIN_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    ME_PLAIN_DEPTH = 16,
    ME_PLAIN_WORDS = 64 /**< texts that are written once in a pickle */
};

typedef struct me_plain_writer {
    FILE *file;     /**< errors are the file's: see ferror() */
    bool is_pickle; /**< else JSON */
    uint32_t n_put; /**< values that were put aside */
    int depth;
    uint32_t n_items[ME_PLAIN_DEPTH]; /**< of what is open */
    bool is_object[ME_PLAIN_DEPTH];
    bool is_value; /**< a key was written */
    const char *words[ME_PLAIN_WORDS];
    uint32_t places[ME_PLAIN_WORDS]; /**< under which they were put aside */
    int n_words;
} me_plain_writer;

/** Begin; there is one value to be written. */
void me_plain_begin(me_plain_writer *w, FILE *file, bool is_pickle);

/** The value is whole. */
void me_plain_end(me_plain_writer *w);

void me_plain_open(me_plain_writer *w, bool is_object);
void me_plain_close(me_plain_writer *w);

/** @param key  static: it is compared by its address */
void me_plain_key(me_plain_writer *w, const char *key);
void me_plain_text(me_plain_writer *w, const char *text);
/** A text that comes often. @param word  static */
void me_plain_word(me_plain_writer *w, const char *word);
void me_plain_number(me_plain_writer *w, uint64_t number);
void me_plain_real(me_plain_writer *w, double number);
void me_plain_bool(me_plain_writer *w, bool is_true);

/** Put the list or object aside that was just closed. @return where */
uint32_t me_plain_put(me_plain_writer *w);

/** What was put aside, once more; of a pickle alone. */
void me_plain_get(me_plain_writer *w, uint32_t place);

#endif /* MEMEST_REPORT_PLAIN_WRITER_H */
