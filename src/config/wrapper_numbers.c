/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that a shell left out: of `srun -N $NODES -n 8` with an empty variable
 * `-N -n 8` is left. */
#include "base/parse.h"
#include "config/wrappers.h"

#include <ctype.h>
#include <string.h>

bool me_wrapper_is_no_number(const char *word)
{
    const bool is_option =
        word[0] == '-' && isdigit((unsigned char)word[1]) == 0;
    return is_option || me_wrapper_find(word) != NULL ||
           me_ends_with(word, ".sh") || me_ends_with(word, ".py");
}

/** Is the value of an option a number that launchers count with? */
static bool is_number(me_wrapper_use use)
{
    return use == ME_WRAPPER_RANKS || use == ME_WRAPPER_NODES ||
           use == ME_WRAPPER_PER_NODE || use == ME_WRAPPER_PER_GPU ||
           use == ME_WRAPPER_SETS || use == ME_WRAPPER_PER_SET ||
           use == ME_WRAPPER_SETS_OF_HOST;
}

bool me_wrapper_lacks_number(const me_wrapper *wrapper,
                             const me_wrapper_option *option, const char *next)
{
    const bool is_of_python = wrapper->kind == ME_WRAPPER_TORCHRUN ||
                              wrapper->kind == ME_WRAPPER_DEEPSPEED ||
                              wrapper->kind == ME_WRAPPER_ACCELERATE;
    return !is_of_python && option->n_values == 1 && is_number(option->use) &&
           next != NULL && me_wrapper_is_no_number(next);
}
