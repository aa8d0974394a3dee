/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/slurm_options.h"
#include "support/test.h"

#include <stdio.h>

/** Words, and what is read of them: `name`, `name=value`, or what is wrong. */
static const struct {
    me_slurm_program program;
    const char *words[6]; /**< ends with NULL */
    const char *read;     /**< blanks between, and the words that are left */
} cases[] = {
    {ME_SLURM_SBATCH,
     {"--tasks-per-node=4", "-N", "2"},
     "tasks-per-node=4 nodes=2 | 0"},
    {ME_SLURM_SBATCH,
     {"--ntasks-per-nod", "4", "job"},
     "ntasks-per-node=4 | 1"},
    {ME_SLURM_SBATCH, {"--ntasks-per-n=4"}, "ntasks-per-node=4 | 0"},
    {ME_SLURM_SBATCH, {"--node=2"}, "AMBIGUOUS | 1"},
    {ME_SLURM_SBATCH, {"--ntasks=2"}, "ntasks=2 | 0"},
    {ME_SLURM_SBATCH, {"--gpus", "8"}, "gpus=8 | 0"},
    {ME_SLURM_SBATCH, {"-W", "job"}, "wait | 1"},
    {ME_SLURM_SRUN, {"-W", "60", "job"}, "wait=60 | 1"},
    {ME_SLURM_SRUN, {"--wait=60", "job"}, "wait=60 | 1"},
    {ME_SLURM_SRUN,
     {"--nice", "--propagate", "-X", "job"},
     "nice propagate disable-status | 1"},
    {ME_SLURM_SRUN,
     {"--nice=5", "-K1", "-I30", "job"},
     "nice=5 kill-on-bad-exit=1 immediate=30 | 1"},
    {ME_SLURM_SRUN,
     {"-vv", "-K", "-ulN2", "job"},
     "verbose verbose kill-on-bad-exit unbuffered label nodes=2 | 1"},
    {ME_SLURM_SRUN, {"-ul", "-n", "4"}, "unbuffered label ntasks=4 | 0"},
    {ME_SLURM_SRUN, {"-n=4"}, "ntasks=4 | 0"},
    {ME_SLURM_SRUN,
     {"--x11", "-Z", "--stepmgr", "--", "job"},
     "x11 no-allocate stepmgr | 2"},
    {ME_SLURM_SRUN,
     {"--container-image=a", "--no-container-mount-home"},
     "container-image=a no-container-mount-home | 0"},
    {ME_SLURM_SRUN, {"--bar=4", "job"}, "FOREIGN | 1"},
    {ME_SLURM_SRUN, {"--bar", "4"}, "UNKNOWN | 2"},
    {ME_SLURM_SRUN, {"-n"}, "NO_VALUE | 1"},
    {ME_SLURM_SRUN, {"--ntasks"}, "NO_VALUE | 1"},
    {ME_SLURM_SRUN, {"--array=3"}, "FOREIGN | 0"},
    {ME_SLURM_SBATCH, {"--array=3"}, "array=3 | 0"},
    {ME_SLURM_SRUN, {"-", "job"}, " | 2"},
};

static const char *name_of(me_slurm_read read)
{
    switch (read) {
    case ME_SLURM_FOREIGN: return "FOREIGN";
    case ME_SLURM_UNKNOWN: return "UNKNOWN";
    case ME_SLURM_AMBIGUOUS: return "AMBIGUOUS";
    case ME_SLURM_NO_VALUE: return "NO_VALUE";
    case ME_SLURM_END:
    case ME_SLURM_OPTION: break;
    }
    return "";
}

static void read_all(me_slurm_program program, const char *const *words,
                     char text[256])
{
    int argc = 0;
    while (words[argc] != NULL) {
        argc++;
    }
    me_slurm_words w = {.program = program, .argc = argc, .argv = words};
    size_t n = 0;
    me_slurm_read read = ME_SLURM_OPTION;
    text[0] = '\0';
    while (read == ME_SLURM_OPTION) {
        read = me_slurm_words_next(&w);
        const bool is_option = read == ME_SLURM_OPTION;
        n += (size_t)snprintf(
            text + n, 256 - n, "%s%s%s%s",
            n == 0 || (!is_option && *name_of(read) == '\0') ? "" : " ",
            is_option ? w.name : name_of(read),
            is_option && w.value != NULL ? "=" : "",
            is_option && w.value != NULL ? w.value : "");
    }
    (void)snprintf(text + n, 256 - n, " | %d", argc - w.at);
}

static void test_words_are_read_as_getopt_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        read_all(cases[i].program, cases[i].words, text);
        assert_string_equal(text, cases[i].read);
    }
}

static void test_what_is_near_is_named(void **state)
{
    (void)state;
    char why[ME_SLURM_WHY];
    const me_slurm_words w = {.program = ME_SLURM_SRUN};
    assert_true(
        me_slurm_words_explain(&w, ME_SLURM_FOREIGN, "--ntask-pernode=8", why));
    assert_string_equal(
        why, "is no option of srun: did you mean --ntasks-per-node?");
    assert_true(
        me_slurm_words_explain(&w, ME_SLURM_AMBIGUOUS, "--node=8", why));
    assert_true(me_slurm_words_explain(&w, ME_SLURM_NO_VALUE, "-n", why));
    assert_false(
        me_slurm_words_explain(&w, ME_SLURM_UNKNOWN, "--environment=a", why));
    assert_false(me_slurm_words_explain(&w, ME_SLURM_OPTION, "--nodes", why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_read_as_getopt_does),
        cmocka_unit_test(test_what_is_near_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
