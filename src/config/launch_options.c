/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of launchers that say ranks in another way than by a number. */
#include "base/parse.h"
#include "base/python_number.h"
#include "base/size.h"
#include "config/launch_ranks.h"

#include <string.h>

/** The file of hosts, or of settings, of a launcher. */
static void take_file(me_launch_ranks *r, const me_wrapper *wrapper,
                      const char *name, const char *value)
{
    if (wrapper->kind == ME_WRAPPER_MPIRUN) {
        me_launch_hosts_file(&r->hosts, name, value);
    } else if (wrapper->kind == ME_WRAPPER_ACCELERATE) {
        r->accelerate.deepspeed.host_file = value;
    } else {
        r->deepspeed.host_file = value;
    }
}

/** Of DeepSpeed's hosts, whoever starts it. */
static me_deepspeed_said *deepspeed_of(me_launch_ranks *r,
                                       const me_wrapper *wrapper)
{
    return wrapper->kind == ME_WRAPPER_ACCELERATE ? &r->accelerate.deepspeed
                                                  : &r->deepspeed;
}

/** Of srun's options, before Slurm's variables. */
static void take_memory(me_launch_ranks *r, const char *name, const char *value)
{
    const bool is_of_node = strcmp(name, "--mem") == 0;
    r->memory = (me_slurm_memory){.of_cpu = value};
    if (is_of_node || strcmp(name, "--mem-per-gpu") == 0) {
        r->memory = is_of_node ? (me_slurm_memory){.of_node = value}
                               : (me_slurm_memory){.of_gpu = value};
    }
}

bool me_launch_ranks_option(me_launch_ranks *r, const me_wrapper *wrapper,
                            const me_wrapper_option *option, const char *name,
                            const char *value)
{
    me_accelerate_said *a = &r->accelerate;
    switch (option->use) {
    case ME_WRAPPER_HOSTS: me_launch_hosts_add(&r->hosts, value); return true;
    case ME_WRAPPER_HOST_FILE: take_file(r, wrapper, name, value); return true;
    case ME_WRAPPER_MAP:
        me_launch_hosts_map(&r->hosts, &r->mpirun, value);
        return true;
    case ME_WRAPPER_NODE_LIST: r->node_list = value; return true;
    case ME_WRAPPER_INCLUDE:
        deepspeed_of(r, wrapper)->include = value[0] == '\0' ? NULL : value;
        return true;
    case ME_WRAPPER_EXCLUDE:
        deepspeed_of(r, wrapper)->exclude = value[0] == '\0' ? NULL : value;
        return true;
    case ME_WRAPPER_CONFIG_FILE: a->file = value; return true;
    case ME_WRAPPER_SEVERAL: a->is_several = true; return true;
    case ME_WRAPPER_DEEPSPEED_TOO:
        a->is_several = true;
        a->deepspeed.is_used = true;
        return true;
    case ME_WRAPPER_CPU: a->is_cpu = true; return true;
    case ME_WRAPPER_STARTER: a->launcher = value; return true;
    case ME_WRAPPER_UNREAD:
        *(wrapper->kind == ME_WRAPPER_MPIRUN ? &r->hosts.placing
          : wrapper->kind == ME_WRAPPER_SRUN ? &r->unread
                                             : &r->steps.unread) = name;
        return true;
    case ME_WRAPPER_GPUS: me_launch_ranks_gpus(r, name, value); return true;
    case ME_WRAPPER_PARTITION: me_launch_ranks_partition(r, value); return true;
    case ME_WRAPPER_HOST_MEMORY: take_memory(r, name, value); return true;
    case ME_WRAPPER_ENDS:
    case ME_WRAPPER_NOTHING:
    case ME_WRAPPER_RANKS:
    case ME_WRAPPER_NODES:
    case ME_WRAPPER_PER_NODE:
    case ME_WRAPPER_ONE_PER_NODE:
    case ME_WRAPPER_PER_GPU:
    case ME_WRAPPER_SETS:
    case ME_WRAPPER_PER_SET:
    case ME_WRAPPER_SETS_OF_HOST:
    case ME_WRAPPER_ASSIGNMENT:
    case ME_WRAPPER_ASSIGNMENTS:
    case ME_WRAPPER_PAIR:
    case ME_WRAPPER_PARAMETER:
    case ME_WRAPPER_MODULE:
    case ME_WRAPPER_COMMAND: break;
    }
    return false;
}

const char *me_launch_range_end(const char *value)
{
    const size_t n = strcspn(value, ":");
    return n > 0 && value[n] == ':' && strlen(value + n + 1) == n &&
                   strncmp(value, value + n + 1, n) == 0
               ? value + n + 1
               : value;
}

me_status me_launch_ranks_count(const me_launch_ranks *ranks, const char *name,
                                const char *value, me_diag *diag,
                                uint64_t *count_out)
{
    const uint64_t max = UINT64_C(1) << 24;
    uint64_t count = 0;
    const char *hint = "";
    me_str number = {0};
    const char *one =
        strstr(name, "nodes") == NULL ? value : me_launch_range_end(value);
    const bool is_count = me_python_int(one, &number) &&
                          me_parse_u64(me_str_text(&number), &count) == ME_OK &&
                          count > 0 && count <= max;
    const me_status status = me_str_status(&number);
    me_str_fini(&number);
    if (status != ME_OK) {
        return me_fail(diag, status, "no memory for the launch command");
    }
    if (is_count) {
        *count_out = count;
        return ME_OK;
    }
    const uint64_t here =
        ranks->visible > 0 ? ranks->visible : ranks->gpus.count;
    if ((strcmp(value, "gpu") == 0 || strcmp(value, "auto") == 0) && here > 0) {
        *count_out = here;
        return ME_OK;
    }
    if (value[0] == '\0') {
        hint = "; nothing stands there";
    } else if (strchr(value, '$') != NULL) {
        hint = "; the shell has not put in the variable's value";
    } else if (strchr(value, ':') != NULL || strchr(value, '-') != NULL) {
        hint = "; a range decides nothing: give the number that will run";
    } else if (strcmp(value, "gpu") == 0 || strcmp(value, "auto") == 0) {
        hint = "; give the number of GPUs of a node";
    }
    return me_fail_flag(
        diag,
        me_fail(diag, ME_ERR_CONFIG,
                "%.*s%s%.60s: must be a whole number from 1 to %d%s",
                (int)me_min_u64(strcspn(name, "="), 60), name,
                value[0] == '\0' ? "" : " ", value, 1 << 24, hint),
        name);
}

me_status me_launch_ranks_take(me_launch_ranks *ranks, me_config *config,
                               const char *name, const char *value,
                               me_diag *diag, uint64_t *count_out)
{
    me_diag why = {.status = ME_OK};
    const me_status status =
        me_launch_ranks_count(ranks, name, value, &why, count_out);
    if (status == ME_ERR_CONFIG) {
        ranks->is_open = true;
        return me_config_leave_world_open(
            config, diag, "%s, or give memest's --world-size", why.text);
    }
    return status == ME_OK ? status : me_fail(diag, status, "%s", why.text);
}

bool me_launch_takes_no_value(const me_wrapper *wrapper, const char *word)
{
    const bool is_of_python = wrapper->kind == ME_WRAPPER_TORCHRUN ||
                              wrapper->kind == ME_WRAPPER_DEEPSPEED ||
                              wrapper->kind == ME_WRAPPER_ACCELERATE;
    const bool is_number = word[0] == '-' && word[1] != '\0' &&
                           word[1 + strspn(word + 1, "0123456789.")] == '\0';
    return is_of_python && word[0] == '-' && word[1] != '\0' && !is_number &&
           strchr(word, ' ') == NULL;
}

me_status me_launch_unread_fail(const char *option, me_diag *diag)
{
    return me_fail(diag, ME_ERR_CONFIG,
                   "srun %.60s is not read: give the command of the tasks that "
                   "train, with its number of tasks",
                   option);
}
