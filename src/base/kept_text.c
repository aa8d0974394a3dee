/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/kept_text.h"

#include "base/alloc.h"
#include "base/input.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum {
    TEXTS_MAX = 256,
    BYTES_MAX = 64 << 20 /**< of all */
};

typedef struct kept {
    char *path;
    char *text;
    size_t length;
} kept;

typedef struct kept_texts {
    pthread_mutex_t lock;
    bool is_on;
    size_t count;
    size_t bytes;
    kept files[TEXTS_MAX];
} kept_texts;

/** Writable at file scope: what a command reads is the process's; results depend
 * on the files alone. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): above
static kept_texts all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const kept *find(const char *path)
{
    for (size_t i = 0; i < all.count; i++) {
        if (strcmp(all.files[i].path, path) == 0) {
            return &all.files[i];
        }
    }
    return NULL;
}

bool me_kept_text_find(const char *path, me_str *text_out)
{
    (void)pthread_mutex_lock(&all.lock);
    const kept *file = find(path);
    if (file != NULL) {
        me_str_append_n(text_out, file->text, file->length);
    }
    (void)pthread_mutex_unlock(&all.lock);
    return file != NULL;
}

static void add(const char *path, const char *text, size_t length)
{
    kept file = {.path = me_strdup(path, "kept.path"),
                 .text = me_alloc(length + 1, 1, "kept.text"),
                 .length = length};
    if (file.path == NULL || file.text == NULL) {
        me_free(file.path);
        me_free(file.text);
        return;
    }
    memcpy(file.text, text, length);
    all.files[all.count++] = file;
    all.bytes += length;
}

void me_kept_text_add(const char *path, const char *text, size_t length)
{
    (void)pthread_mutex_lock(&all.lock);
    if (all.is_on && all.count < TEXTS_MAX && length <= BYTES_MAX - all.bytes &&
        find(path) == NULL) {
        add(path, text, length);
    }
    (void)pthread_mutex_unlock(&all.lock);
}

void me_input_keep_texts(void)
{
    all.is_on = true;
}

void me_input_drop_texts(void)
{
    for (size_t i = 0; i < all.count; i++) {
        me_free(all.files[i].path);
        me_free(all.files[i].text);
    }
    all.is_on = false;
    all.count = 0;
    all.bytes = 0;
}
