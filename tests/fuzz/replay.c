/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target over files, for compilers without libFuzzer. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    INPUT_MAX = 1 << 20
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path, uint8_t *input)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    const size_t size = fread(input, 1, INPUT_MAX, file);
    const int is_broken = ferror(file);
    (void)fclose(file);
    /* A block of its exact size, so that reading beyond it is seen. */
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (is_broken || exact == NULL) {
        free(exact);
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    for (size_t i = 0; i < size; i++) {
        exact[i] = input[i];
    }
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    uint8_t *input = malloc(INPUT_MAX);
    int failed = argc < 2 || input == NULL;
    for (int i = 1; i < argc && input != NULL; i++) {
        failed |= replay(argv[i], input);
    }
    free(input);
    (void)printf("replayed %d file(s)\n", argc - 1);
    return failed;
}
