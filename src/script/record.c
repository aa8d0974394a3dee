/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/record.h"

#include "base/alloc.h"
#include "script/order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/** In front of each frame's bytes. */
typedef struct head {
    uint32_t sender;
    uint16_t length;
    uint16_t is_last;
} head;

enum {
    FRAME_BYTES = ME_RECORD_FRAME - (int)sizeof(head)
};

void me_words_add(me_words *words, const char *word)
{
    me_str_append_n(&words->text, word, strlen(word) + 1);
    words->count++;
}

void me_words_fini(me_words *words)
{
    me_str_fini(&words->text);
    words->count = 0;
}

static bool send_frame(const char *bytes, size_t length, bool is_last)
{
    char frame[ME_RECORD_FRAME];
    const head h = {.sender = (uint32_t)getpid(),
                    .length = (uint16_t)length,
                    .is_last = is_last};
    memcpy(frame, &h, sizeof h);
    memcpy(frame + sizeof h, bytes, length);
    ssize_t n = -1;
    do { // at most PIPE_BUF bytes are written whole or not at all
        n = write(ME_RECORD_FD, frame, sizeof h + length);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

static bool is_pipe(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

bool me_record_is_there(void)
{
    uint32_t process = (uint32_t)getpid();
    for (int i = 0; i < ME_ORDER_DEPTH_MAX && !is_pipe(ME_RECORD_FD); i++) {
        char path[64];
        process = i == 0 ? (uint32_t)getppid() : me_order_parent(process);
        if (process <= 1) {
            break;
        }
        (void)snprintf(path, sizeof path, "/proc/%u/fd/%d", process,
                       ME_RECORD_FD);
        const int fd = openat(AT_FDCWD, path, O_WRONLY | O_NONBLOCK);
        if (fd >= 0 && is_pipe(fd) && fcntl(fd, F_SETFL, O_WRONLY) == 0) {
            (void)dup2(fd, ME_RECORD_FD);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    return is_pipe(ME_RECORD_FD);
}

bool me_record_send(const me_words *words)
{
    if (me_str_status(&words->text) != ME_OK) {
        return false;
    }
    const char *at = words->text.text;
    size_t left = words->text.length;
    bool is_sent = true;
    while (is_sent && left > 0) {
        const size_t n = left < FRAME_BYTES ? left : FRAME_BYTES;
        is_sent = send_frame(at, n, n == left);
        at += n;
        left -= n;
    }
    return is_sent;
}

static me_record_part *find_part(me_record_reader *r, uint32_t sender,
                                 me_diag *diag)
{
    for (uint32_t i = 0; i < r->n_parts; i++) {
        if (r->parts[i].sender == sender) {
            return &r->parts[i];
        }
    }
    if (r->n_parts == ME_RECORD_MAX_SENDERS) {
        (void)me_fail(diag, ME_ERR_CONFIG,
                      "the script wrote to what memest listens to");
        return NULL;
    }
    me_record_part *grown = me_grow(r->parts, r->n_parts, &r->capacity,
                                    sizeof *r->parts, "records of a script");
    if (grown == NULL) {
        (void)me_fail(diag, ME_ERR_NOMEM, "no memory for what a script does");
        return NULL;
    }
    r->parts = grown;
    r->parts[r->n_parts] = (me_record_part){.sender = sender};
    return &r->parts[r->n_parts++];
}

static void drop_part(me_record_reader *r, me_record_part *part)
{
    me_str_fini(&part->bytes);
    *part = r->parts[--r->n_parts];
}

static me_status take_frame(me_record_reader *r, const head *h,
                            me_record_seen *seen, void *self, me_diag *diag)
{
    me_record_part *part = find_part(r, h->sender, diag);
    if (part == NULL) {
        return diag->status;
    }
    me_str_append_n(&part->bytes, r->frame + sizeof *h, h->length);
    me_status status = me_str_status(&part->bytes);
    if (status != ME_OK) {
        return me_fail(diag, status, "no memory for what a script does");
    }
    const size_t length = part->bytes.length;
    if (length > ME_RECORD_MAX_BYTES) {
        return me_fail(diag, ME_ERR_CONFIG, "a command with more than %d bytes",
                       ME_RECORD_MAX_BYTES);
    }
    if (h->is_last == 0) {
        return ME_OK;
    }
    status = part->bytes.text[length - 1] == '\0'
                 ? seen(self, part->bytes.text, length, diag)
                 : me_fail(diag, ME_ERR_CONFIG,
                           "the script wrote to what memest listens to");
    drop_part(r, part);
    return status;
}

me_status me_record_take(me_record_reader *r, const char *bytes, size_t length,
                         me_record_seen *seen, void *self, me_diag *diag)
{
    me_status status = ME_OK;
    r->total_bytes += length;
    if (r->total_bytes > ME_RECORD_ALL_BYTES) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "its commands have more than %d bytes",
                       ME_RECORD_ALL_BYTES);
    }
    while (status == ME_OK && length > 0) {
        head h = {.length = 0};
        size_t whole = sizeof h;
        if (r->filled >= sizeof h) {
            memcpy(&h, r->frame, sizeof h);
            whole += h.length;
        }
        const size_t missing = whole - r->filled;
        const size_t n = missing < length ? missing : length;
        memcpy(r->frame + r->filled, bytes, n);
        r->filled += n;
        bytes += n;
        length -= n;
        if (r->filled < sizeof h) {
            continue;
        }
        memcpy(&h, r->frame, sizeof h);
        if (h.length == 0 || h.length > FRAME_BYTES) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "the script wrote to what memest listens to");
        }
        if (r->filled == sizeof h + h.length) {
            r->filled = 0;
            status = take_frame(r, &h, seen, self, diag);
        }
    }
    return status;
}

void me_record_reader_fini(me_record_reader *reader)
{
    for (uint32_t i = 0; i < reader->n_parts; i++) {
        me_str_fini(&reader->parts[i].bytes);
    }
    me_free(reader->parts);
    *reader = (me_record_reader){.filled = 0};
}
