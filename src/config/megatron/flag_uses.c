/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/clean.h"
#include "base/parse.h"
#include "base/python_number.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

#include <stdio.h>
#include <string.h>

enum {
    WORDS_MAX = 20000
};

/** How many values a flag takes. */
typedef struct arity {
    int min;
    int max; /* -1: no limit */
} arity;

static arity arity_of(const char *values)
{
    switch (values[0]) {
    case '\0':
    case ' ': return (arity){0, 0};
    case '+': return (arity){1, -1};
    case '*': return (arity){0, -1};
    case '3': return (arity){3, 3};
    default: return (arity){1, 1};
    }
}

/** The values' own part, behind the sign of their number. */
static const char *kind_of(const char *values, size_t *length_out)
{
    values += values[0] == '+' || values[0] == '*' || values[0] == '3';
    *length_out = strcspn(values, " ");
    return values;
}

/** As Python's argparse: -1 and -.5 are values, -1e-5 is not. */
static bool is_negative(const char *text)
{
    const char *c = text + 1;
    const size_t before = strspn(c, "0123456789");
    c += before;
    if (*c != '.') {
        return before > 0 && *c == '\0';
    }
    c++;
    const size_t after = strspn(c, "0123456789");
    return after > 0 && c[after] == '\0';
}

/** Its \d is a decimal digit of any script. */
static bool is_negative_number(const char *text)
{
    me_str plain = {0};
    if (text[1] == '-') { // the most are flags
        return false;
    }
    me_python_plain(text, &plain);
    const bool is_one = is_negative(me_str_text(&plain));
    me_str_fini(&plain);
    return is_one;
}

static bool is_flag(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && !is_negative_number(text) &&
           strchr(text, ' ') == NULL;
}

static void describe(const char *kind, size_t length, me_str *text)
{
    if (length == 1 && kind[0] == 'i') {
        me_str_append(text, "a whole number of at most 64 bits");
    } else if (length == 1 && (kind[0] == 'f' || kind[0] == 'n')) {
        me_str_append(text, "a number");
    } else if (length == 1 && kind[0] == 's') {
        me_str_append(text, "text");
    } else if (length == 1 && kind[0] == 't') {
        me_str_append(text, "whole numbers with commas between them");
    } else if (length == 1 && kind[0] == 'p') {
        me_str_append(text, "a whole number, or a list such as ([0]+[1])*2");
    } else {
        me_str_append(text, "one of ");
        for (size_t i = 0; i < length; i++) {
            if (kind[i] == '|') {
                me_str_append(text, ", ");
            } else {
                me_str_append_n(text, kind + i, 1);
            }
        }
    }
}

/** What a fork's word for a value means, or NULL. */
static const me_flag_spelling *find_spelling(const char *flag,
                                             const char *value)
{
    for (const me_flag_spelling *s = me_flag_spellings; s->flag != NULL; s++) {
        if (strcmp(s->flag, flag) == 0 &&
            me_words_have(s->spelled, strlen(s->spelled), value)) {
            return s;
        }
    }
    return NULL;
}

/** Python's int(), of a text that a comma may end. */
static bool is_whole(const char *text, size_t length)
{
    char one[32];
    uint64_t number = 0;
    me_str normal = {0};
    (void)snprintf(one, sizeof one, "%.*s", (int)length, text);
    const bool is_number =
        length < sizeof one && me_python_int(one, &normal) &&
        me_parse_u64(me_str_text(&normal) + (me_str_text(&normal)[0] == '-'),
                     &number) == ME_OK;
    me_str_fini(&normal);
    return is_number;
}

/** tuple_type(): "128,0" and "(128,0)". */
static bool is_tuple(const char *text)
{
    static const char brackets[] = "()";
    text += strspn(text, brackets);
    size_t end = strlen(text);
    while (end > 0 && strchr(brackets, text[end - 1]) != NULL) {
        end--;
    }
    for (size_t from = 0, n = 0; from <= end; from += n + 1) {
        n = strcspn(text + from, ",");
        n = from + n > end ? end - from : n;
        if (!is_whole(text + from, n)) {
            return false;
        }
    }
    return true;
}

/** A value in the form that options take; false: it is not of its kind. */
static bool normalize(me_flag_use *use, const char *value, me_str *normal)
{
    size_t length = 0;
    const char *kind = kind_of(use->flag.values, &length);
    char letter = '\0';
    if (length == 1) {
        letter = kind[0];
    }
    uint64_t whole = 0;
    double number = 0.0;
    if (letter == 'i') {
        return me_python_int(value, normal) &&
               me_parse_u64(me_str_text(normal) +
                                (me_str_text(normal)[0] == '-'),
                            &whole) == ME_OK;
    }
    if (letter == 'f' && me_python_not_finite(value, normal)) {
        return true;
    }
    if (letter == 'f' || letter == 'n') {
        return me_python_float(value, normal) &&
               me_parse_double(me_str_text(normal), &number) == ME_OK;
    }
    if (letter == 'p' && strchr(value, '[') != NULL) {
        me_str_append(normal, value); // Python's own, which eval() reads
        return true;
    }
    if (letter == 't' || letter == 'p') {
        me_python_plain(value, normal);
        value = me_str_text(normal);
        return letter == 't' ? is_tuple(value) : is_whole(value, strlen(value));
    }
    use->spelling = find_spelling(use->name, value);
    me_str_append(normal, use->spelling != NULL ? use->spelling->meant : value);
    value = me_str_text(normal);
    return letter == 's' || me_words_have(kind, length, value);
}

/** What would be right: the option's own range is the better answer. */
static void describe_use(const me_flag_use *use, me_str *text)
{
    size_t length = 0;
    const char *kind = kind_of(use->flag.values, &length);
    const char *name = use->flag.rule->option;
    const me_option *option = name == NULL ? NULL : me_option_find(name);
    const bool is_own = use->flag.rule->constant != NULL ||
                        (length == 1 && strchr("tp", kind[0]) != NULL);
    if (option != NULL && option->type != ME_OPTION_ENUM && !is_own) {
        me_option_format_range(option, text);
    } else {
        describe(kind, length, text);
    }
}

static me_status fail_values(const me_flag_use *use, const char *value,
                             me_diag *diag)
{
    me_str right = {0};
    describe_use(use, &right);
    me_status status = ME_OK;
    if (value == NULL) {
        const bool is_three = use->flag.values[0] == '3';
        status = me_fail(
            diag, ME_ERR_SYNTAX, "%s has %s: give %s that is %s", use->name,
            use->n_values == 0 ? "no value" : "too few values",
            is_three ? "three values, each" : "a value", me_str_text(&right));
    } else {
        status = me_fail(diag, ME_ERR_CONFIG, "%s %.80s: must be %s", use->name,
                         value, me_str_text(&right));
    }
    me_str_fini(&right);
    return me_fail_flag(diag, status, use->name);
}

/** Put @p text in the place of value @p i; the command's own words stay. */
static me_status replace_value(me_config *config, me_flag_use *use, int i,
                               const char *text, me_diag *diag)
{
    me_arena *arena = config->own->text;
    const char **values =
        me_arena_alloc(arena, (size_t)use->n_values, sizeof *values);
    char *copy = me_arena_strdup(arena, text);
    if (values == NULL || copy == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the flags");
    }
    for (int k = 0; k < use->n_values; k++) {
        values[k] = k == i ? copy : use->values[k];
    }
    if (i == 0) {
        use->word = use->values[0];
    }
    use->values = values;
    return ME_OK;
}

static me_status check_value(me_config *config, me_flag_use *use, int i,
                             me_diag *diag)
{
    me_str normal = {0};
    const bool is_right = normalize(use, use->values[i], &normal);
    me_status status = ME_OK;
    if (me_str_status(&normal) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no memory for the flags");
    } else if (!is_right) {
        status = fail_values(use, use->values[i], diag);
    } else if (strcmp(me_str_text(&normal), use->values[i]) != 0) {
        status = replace_value(config, use, i, me_str_text(&normal), diag);
    }
    me_str_fini(&normal);
    return status;
}

static me_status check_values(me_config *config, me_flag_use *use,
                              me_diag *diag)
{
    if (use->flag.rule == NULL) {
        return ME_OK;
    }
    const arity takes = arity_of(use->flag.values);
    if (use->n_values < takes.min) {
        return fail_values(use, NULL, diag);
    }
    if (takes.max == 0 && use->joined != NULL) {
        return me_fail(diag, ME_ERR_SYNTAX, "%s=%.80s: the flag takes no value",
                       use->name, use->joined);
    }
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < use->n_values; i++) {
        status = check_value(config, use, i, diag);
    }
    return status;
}

/** The name of `--flag=value` needs a copy, and one that cannot be printed;
 * everything else stays in argv. */
static me_status split_name(me_config *config, const char *text,
                            me_flag_use *use, me_diag *diag)
{
    const char *equals = strchr(text, '=');
    use->name = text;
    if (equals == NULL && me_text_is_clean(text)) {
        return ME_OK;
    }
    char *name = me_arena_strdup(config->own->text, text);
    if (name == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the flags");
    }
    use->name = name;
    if (equals == NULL) {
        me_text_clean(name);
        return ME_OK;
    }
    name[equals - text] = '\0';
    me_text_clean(name);
    use->joined = equals + 1;
    use->values = &use->joined;
    use->n_values = 1;
    return ME_OK;
}

/** Values that follow; an unknown flag takes all up to the next flag. */
static int take_values(int argc, const char *const *argv, me_flag_use *use)
{
    if (use->joined != NULL) {
        return 0;
    }
    const arity takes =
        use->flag.rule == NULL ? (arity){0, -1} : arity_of(use->flag.values);
    int n = 0;
    while (n < argc && n != takes.max && !is_flag(argv[n])) {
        n++;
    }
    use->values = argv;
    use->n_values = n;
    return n;
}

static void mark_repeated(me_flag_uses *uses, const char *name)
{
    for (int i = 0; i < uses->count; i++) {
        if (strcmp(uses->uses[i].name, name) == 0) {
            uses->uses[i].is_repeated = true;
        }
    }
}

/** A word that belongs to no flag. A shell leaves a carriage return behind a
 *  backslash as a word of its own. */
static me_status refuse_stray(const me_flag_uses *uses, const char *word,
                              const char *before, me_diag *diag)
{
    const me_flag_use *last =
        uses->count == 0 ? NULL : &uses->uses[uses->count - 1];
    if (word[strspn(word, " \r")] == '\0' && strchr(word, '\r') != NULL) {
        return me_fail(diag, ME_ERR_SYNTAX,
                       "a carriage return is a word of the launch command: its "
                       "file has the line ends of Windows, which a shell takes "
                       "so too; dos2unix mends it");
    }
    if (last != NULL && last->flag.rule != NULL &&
        arity_of(last->flag.values).max == 1) {
        const me_status status =
            me_fail(diag, ME_ERR_SYNTAX,
                    "'%.80s' belongs to no flag: %s takes one value, %.60s; "
                    "without quotes a shell makes several of a value with "
                    "blanks, or of an array",
                    word, last->name, last->values[0]);
        return me_fail_flag(diag, status, last->name);
    }
    return me_fail(diag, ME_ERR_SYNTAX, "'%.80s' belongs to no flag%s%.60s",
                   word, before == NULL ? "" : ": it comes after ",
                   before == NULL ? "" : before);
}

me_status me_flag_uses_read(me_config *config, int argc,
                            const char *const *argv, me_diag *diag,
                            me_flag_uses *uses_out)
{
    *uses_out = (me_flag_uses){0};
    if (argc > WORDS_MAX) {
        return me_fail(diag, ME_ERR_SYNTAX,
                       "launch command of more than %d words", WORDS_MAX);
    }
    uses_out->uses = me_alloc(argc < 1 ? 1 : (size_t)argc,
                              sizeof *uses_out->uses, "config.flag_uses");
    if (uses_out->uses == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the flags");
    }
    for (int at = 0; at < argc;) {
        if (!is_flag(argv[at])) {
            return refuse_stray(uses_out, argv[at],
                                at == 0 ? NULL : argv[at - 1], diag);
        }
        me_flag_use *use = &uses_out->uses[uses_out->count];
        me_status status = split_name(config, argv[at], use, diag);
        if (status != ME_OK) {
            return status;
        }
        if (!me_flag_find(use->name, &use->flag)) {
            use->flag = (me_flag){.kind = ME_FLAG_NOT_MODELLED};
        }
        at += 1 + take_values(argc - at - 1, argv + at + 1, use);
        status = check_values(config, use, diag);
        if (status != ME_OK) {
            return status;
        }
        mark_repeated(uses_out, use->name);
        uses_out->count++;
    }
    return ME_OK;
}

const me_flag_use *me_flag_use_find(const me_flag_uses *uses, const char *name)
{
    for (int i = 0; i < uses->count; i++) {
        const me_flag_use *use = &uses->uses[i];
        if (!use->is_repeated && strcmp(use->name, name) == 0) {
            return use;
        }
    }
    return NULL;
}

static bool is_neutral_value(const char *neutral, const char *value)
{
    double a = 0.0;
    double b = 0.0;
    return me_words_have(neutral, strlen(neutral), value) ||
           (me_parse_double(neutral, &a) == ME_OK &&
            me_parse_double(value, &b) == ME_OK && a == b);
}

bool me_flag_use_is_neutral(const me_flag_use *use)
{
    const char *neutral =
        use->flag.rule == NULL ? NULL : use->flag.rule->neutral;
    if (neutral == NULL) {
        return false;
    }
    for (int i = 0; i < use->n_values; i++) {
        if (!is_neutral_value(neutral, use->values[i])) {
            return false;
        }
    }
    return true;
}

static bool has_one_of(const me_flag_use *use, const char *words, size_t length)
{
    for (int i = 0; i < use->n_values; i++) {
        if (me_words_have(words, length, use->values[i])) {
            return true;
        }
    }
    return false;
}

/** One condition: `--flag`, `--flag=value|value`, either after a `!`. */
static bool need_holds(const me_flag_uses *uses, const char *need,
                       size_t length)
{
    const bool is_negated = need[0] == '!';
    need += is_negated;
    length -= is_negated;
    char name[96];
    size_t name_length = strcspn(need, "= ");
    name_length = name_length < sizeof name ? name_length : sizeof name - 1;
    memcpy(name, need, name_length);
    name[name_length] = '\0';
    const me_flag_use *use = me_flag_use_find(uses, name);
    bool holds = use != NULL && !me_flag_use_is_neutral(use);
    if (use != NULL && name_length < length) {
        holds =
            has_one_of(use, need + name_length + 1, length - name_length - 1);
    }
    return holds != is_negated;
}

bool me_flag_needs_hold(const me_flag_uses *uses, const char *needs)
{
    if (needs == NULL) {
        return true;
    }
    size_t length = 0;
    for (const char *need = me_name_next(&needs, &length); need != NULL;
         need = me_name_next(&needs, &length)) {
        if (need_holds(uses, need, length)) {
            return true;
        }
    }
    return false;
}
