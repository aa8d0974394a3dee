/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/place.h"

#include "base/alloc.h"
#include "base/outfile.h"
#include "base/parse.h"
#include "base/str.h"
#include "script/act_private.h"
#include "script/guise.h"
#include "script/interpreter.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *joined(const char *folder, const char *name, size_t length)
{
    me_str path = {0};
    me_str_printf(&path, "%s/%.*s", folder, (int)length, name);
    char *copy = me_str_status(&path) == ME_OK
                     ? me_strdup(me_str_text(&path), "a script's folder")
                     : NULL;
    me_str_fini(&path);
    return copy;
}

static bool is_there(const me_place *place, const char *program)
{
    for (uint32_t i = 0; i < place->n_programs; i++) {
        if (strcmp(place->programs[i], program) == 0) {
            return true;
        }
    }
    return false;
}

/** One more file that may run. @return false: no memory */
static bool allow(me_place *place, const char *program)
{
    if (is_there(place, program)) {
        return true;
    }
    char **grown = me_grow(place->programs, place->n_programs, &place->capacity,
                           sizeof *place->programs, "programs of scripts");
    char *copy = me_strdup(program, "programs of scripts");
    if (grown != NULL) {
        place->programs = grown;
    }
    if (grown == NULL || copy == NULL) {
        me_free(copy);
        return false;
    }
    place->programs[place->n_programs++] = copy;
    return true;
}

/** A program with what the kernel needs to start it: the dynamic loader, or
 *  the shell of a script. */
static bool allow_program(me_place *place, const char *program)
{
    char real[PATH_MAX];
    char loader[PATH_MAX];
    if (!allow(place, program)) {
        return false;
    }
    return !me_interpreter_find(program, loader) ||
           realpath(loader, real) == NULL || allow(place, real);
}

/** Who runs a program. */
typedef enum runner {
    KERNEL, /**< itself, or a shell */
    PYTHON,
    OTHERS /**< Perl and its like, which could run anything */
} runner;

static runner find_runner(const char *program)
{
    char path[PATH_MAX];
    if (!me_interpreter_of_script(program, path) ||
        me_guise_find(path) == ME_GUISE_SHELL) {
        return KERNEL;
    }
    return strncmp(me_guise_base(path), "python", 6) == 0 ? PYTHON : OTHERS;
}

/** What is looked for on PATH. */
typedef struct wanted {
    const char *name;
    size_t length;
    bool is_native; /**< no script that starts another */
} wanted;

/** A file of a name on PATH, and the real one behind it; folders that are not
 *  absolute are left out. */
static bool find_on_path(wanted w, char file[PATH_MAX], char real[PATH_MAX])
{
    const char *path = getenv("PATH");
    char shell[PATH_MAX];
    path = path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path;
    while (*path != '\0') {
        const size_t n = strcspn(path, ":");
        struct stat info;
        const int written = snprintf(file, PATH_MAX, "%.*s/%.*s", (int)n, path,
                                     (int)w.length, w.name);
        if (path[0] == '/' && written > 0 && written < PATH_MAX &&
            access(file, X_OK) == 0 && realpath(file, real) != NULL &&
            stat(real, &info) == 0 && S_ISREG(info.st_mode) &&
            !(w.is_native && me_interpreter_of_script(real, shell))) {
            return true;
        }
        path += n;
        path += *path == ':';
    }
    return false;
}

static bool link_name(me_place *place, const char *name, size_t length,
                      const char *program)
{
    char *path = joined(place->bin, name, length);
    const bool is_made = path != NULL && symlink(program, path) == 0;
    me_free(path);
    return is_made;
}

/** A command that computes in Python: memest in its guise has it run (act.c). */
static bool link_tool(me_place *place, const char *name, size_t length,
                      const char *file)
{
    me_str tool = {0};
    me_str_printf(&tool, ME_PLACE_TOOL "%.*s", (int)length, name);
    const char *text = me_str_text(&tool);
    const bool is_linked = me_str_status(&tool) == ME_OK &&
                           link_name(place, text, strlen(text), file) &&
                           link_name(place, name, length, place->self);
    me_str_fini(&tool);
    return is_linked;
}

/** What runs as it is, or in Python; others are as if they were not there. */
static bool link_program(me_place *place, const me_guise *row, const char *name,
                         size_t length)
{
    char file[PATH_MAX];
    char real[PATH_MAX];
    if (!find_on_path((wanted){name, length, false}, file, real)) {
        return true;
    }
    switch (find_runner(real)) {
    case KERNEL:
        return allow_program(place, real) &&
               link_name(place, name, length, real);
    case PYTHON:
        return row->kind != ME_GUISE_WORK ||
               link_tool(place, name, length, real);
    case OTHERS: break;
    }
    return true;
}

/** The links of one row of the table. */
static bool link_row(me_place *place, const me_guise *row, bool writes_vanish)
{
    const bool runs = row->kind == ME_GUISE_SHELL ||
                      row->kind == ME_GUISE_WORK ||
                      (row->kind == ME_GUISE_WRITE && writes_vanish);
    bool is_fine = true;
    const char *names = row->names;
    size_t n = 0;
    for (const char *name = me_name_next(&names, &n); is_fine && name != NULL;
         name = me_name_next(&names, &n)) {
        is_fine = runs ? link_program(place, row, name, n)
                       : link_name(place, name, n, place->self);
    }
    return is_fine;
}

/** What stands in for torch where a script asks it for the machine's cards: they
 *  are those that nvidia-smi shows (query.c), or of CUDA_VISIBLE_DEVICES those
 *  before the first that is none, as `-1`. All else of torch's is not here. */
static const char torch[] =
    "import os, sys\n"
    "def missing(name):\n"
    "    is_asked = name.split('.')[-1] in ('__path__', '__spec__', '__all__')\n"
    "    raise (AttributeError if is_asked else ImportError)(\n"
    "        'torch.' + name + ' is not here')\n"
    "class Cuda:\n"
    "    def device_count(self):\n"
    "        seen = os.environ.get('CUDA_VISIBLE_DEVICES')\n"
    "        if seen is None:\n"
    "            return int(os.environ['" ME_GUISE_COUNT_OF_CARDS "'])\n"
    "        cards = [card.strip() for card in seen.split(',')]\n"
    "        ends = [n for n, c in enumerate(cards) if not c or c[0] == '-']\n"
    "        return ends[0] if ends else len(cards)\n"
    "    def is_available(self):\n"
    "        return self.device_count() > 0\n"
    "    def get_device_name(self, device=None):\n"
    "        return os.environ.get('" ME_GUISE_CARD "', '').split('|')[0]\n"
    "    def __getattr__(self, name):\n"
    "        missing('cuda.' + name)\n"
    "cuda = sys.modules['torch.cuda'] = Cuda()\n"
    "def __getattr__(name):\n"
    "    missing(name)\n";

static bool write_module(const me_place *place)
{
    const size_t length = strlen(ME_PLACE_MODULES);
    char *folder = joined(place->bin, ME_PLACE_MODULES, length);
    char *path = folder == NULL ? NULL : joined(folder, "torch.py", 8);
    FILE *file = path != NULL && mkdir(folder, 0700) == 0
                     ? me_output_open(path, true)
                     : NULL;
    bool is_written = file != NULL && fputs(torch, file) >= 0;
    if (file != NULL) {
        is_written = fclose(file) == 0 && is_written;
    }
    me_free(path);
    me_free(folder);
    return is_written;
}

/** This machine's Python, for what computes a value (act_python.c). */
static bool put_python(me_place *place)
{
    static const wanted names[] = {{"python3", 7, true}, {"python", 6, true}};
    char file[PATH_MAX];
    char real[PATH_MAX];
    if (!find_on_path(names[0], file, real) &&
        !find_on_path(names[1], file, real)) {
        return true;
    }
    place->python = me_strdup(real, "a script's folder");
    if (place->python == NULL) {
        errno = ENOMEM;
        return false;
    }
    return link_name(place, ME_PLACE_PYTHON, strlen(ME_PLACE_PYTHON), file) &&
           write_module(place);
}

static bool fill_bin(me_place *place, bool writes_vanish)
{
    size_t count = 0;
    const me_guise *rows = me_guise_rows(&count);
    bool is_fine = allow_program(place, place->self) &&
                   link_name(place, ".other", 6, place->self) &&
                   put_python(place);
    for (size_t i = 0; is_fine && i < count; i++) {
        is_fine = link_row(place, &rows[i], writes_vanish);
    }
    return is_fine;
}

static me_status fail(const char *what, me_diag *diag)
{
    return errno == ENOMEM
               ? me_fail(diag, ME_ERR_NOMEM, "no memory for a script's folder")
               : me_fail(diag, ME_ERR_IO, "%s: no folder for a script: %s",
                         what, strerror(errno));
}

static bool make_folders(me_place *place)
{
    place->bin = joined(place->folder, "bin", 3);
    place->tmp = joined(place->folder, "tmp", 3);
    place->layer = joined(place->folder, "layer", 5);
    place->other = joined(place->folder, "bin/.other", 10);
    if (place->bin == NULL || place->tmp == NULL || place->layer == NULL ||
        place->other == NULL) {
        errno = ENOMEM;
        return false;
    }
    return mkdir(place->bin, 0700) == 0 && mkdir(place->tmp, 0700) == 0 &&
           mkdir(place->layer, 0700) == 0;
}

me_status me_place_make(bool writes_vanish, me_place *place, me_diag *diag)
{
    char self[PATH_MAX];
    const char *in = getenv("TMPDIR");
    in = in == NULL || in[0] != '/' ? "/tmp" : in;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        return fail("/proc/self/exe", diag);
    }
    self[length] = '\0';
    place->self = me_strdup(self, "a script's folder");
    place->folder = joined(in, "memest-XXXXXX", 13);
    if (place->self == NULL || place->folder == NULL) {
        errno = ENOMEM;
        return fail(in, diag);
    }
    if (mkdtemp(place->folder) == NULL) {
        me_free(place->folder);
        place->folder = NULL;
        return fail(in, diag);
    }
    return make_folders(place) && fill_bin(place, writes_vanish)
               ? ME_OK
               : fail(place->folder, diag);
}

const char *me_place_program(const me_place *place, const char *name)
{
    char file[PATH_MAX];
    char real[PATH_MAX];
    if (!find_on_path((wanted){name, strlen(name), false}, file, real)) {
        return NULL;
    }
    for (uint32_t i = 0; i < place->n_programs; i++) {
        if (strcmp(place->programs[i], real) == 0) {
            return place->programs[i];
        }
    }
    return NULL;
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    (void)remove(path);
    return 0;
}

void me_place_remove(me_place *place)
{
    if (place->folder != NULL) {
        (void)nftw(place->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    for (uint32_t i = 0; i < place->n_programs; i++) {
        me_free(place->programs[i]);
    }
    me_free(place->programs);
    me_free(place->folder);
    me_free(place->bin);
    me_free(place->other);
    me_free(place->tmp);
    me_free(place->layer);
    me_free(place->self);
    me_free(place->python);
    *place = (me_place){.folder = NULL};
}
