/* SPDX-License-Identifier: BSD-3-Clause */
/* ModTracker's hooks on the modules that PyTorch's own were recorded with: the
 * same order, names, parents and direction. */
#include "base/str.h"
#include "ops/elementwise.h"
#include "ops/functional_linear.h"
#include "ops/reduce.h"
#include "support/events.h"
#include "support/test.h"
#include "tensor/autograd.h"
#include "tensor/region.h"
#include "track/mod_tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_MODULES = 16,
    LINE_BYTES = 512,
    ROWS = 4,
    COLUMNS = 10
};

/** An engine with a ModTracker, and what its hooks said. */
typedef struct scene {
    me_test_events events;
    me_engine *e;
    me_mod_tracker *tracker;
    me_tensor *weights[MAX_MODULES]; /**< by module, of those that have one */
    me_str said;
    bool is_silent; /**< the hooks say nothing */
} scene;

static const char *const hooks[] = {"pre_fw", "post_fw", "pre_bw", "post_bw"};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** The parents in the order of their names. */
static void say_parents(scene *s)
{
    const char *names[MAX_MODULES];
    uint32_t n = 0;
    while ((names[n] = me_mod_tracker_parent(s->tracker, n)) != NULL) {
        n++;
    }
    qsort(names, n, sizeof names[0], by_text);
    for (uint32_t i = 0; i < n; i++) {
        me_str_printf(&s->said, "%s%s", i == 0 ? "" : ",", names[i]);
    }
    me_str_append(&s->said, n == 0 ? "-\n" : "\n");
}

static void on_event(void *self, const me_mod_event *event)
{
    scene *s = self;
    assert_string_equal(me_mod_tracker_fqn(s->tracker, event->module),
                        event->fqn);
    assert_int_equal(me_mod_tracker_is_parent(s->tracker, event->module),
                     event->is_parent);
    if (s->is_silent) {
        return;
    }
    me_str_printf(&s->said, "%s\t%s\t%d\t%d\t", hooks[event->kind], event->fqn,
                  event->is_parent, event->is_backward);
    say_parents(s);
}

static void scene_init(scene *s)
{
    *s = (scene){.tracker = NULL};
    me_test_events_init(&s->events);
    s->e = s->events.e;
    s->tracker = me_mod_tracker_create(s->e);
    assert_non_null(s->tracker);
    me_mod_tracker_observe(s->tracker,
                           (me_mod_observer){.on_event = on_event, .self = s});
}

/** What PyTorch's hooks said in a case. */
static void append_golden(const char *name, me_str *text)
{
    FILE *file = fopen(GOLDEN_DIR "/mod_tracker.tsv", "r");
    assert_non_null(file);
    char line[LINE_BYTES];
    const size_t length = strlen(name);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == '\t') {
            me_str_append(text, line + length + 1);
        }
    }
    (void)fclose(file);
}

static void scene_fini(scene *s, const char *name)
{
    assert_true(me_engine_is_ok(s->e));
    me_str golden = {0};
    append_golden(name, &golden);
    assert_true(strlen(me_str_text(&golden)) > 0);
    if (strcmp(me_str_text(&s->said), me_str_text(&golden)) != 0) {
        fail_msg("%s: PyTorch says\n%s\nmemest says\n%s", name,
                 me_str_text(&golden), me_str_text(&s->said));
    }
    me_str_fini(&golden);
    me_str_fini(&s->said);
    for (int i = 0; i < MAX_MODULES; i++) {
        me_release(s->e, s->weights[i]);
    }
    me_test_events_fini(&s->events);
    me_mod_tracker_destroy(s->tracker);
}

static me_tensor *input(scene *s, bool requires_grad)
{
    me_tensor *x =
        me_empty(s->e, "x", ME_DTYPE_FLOAT32, ME_SHAPE(ROWS, COLUMNS));
    x->requires_grad = requires_grad;
    return x;
}

static me_module_id add(scene *s, me_module_id parent, const char *name,
                        const char *class_name)
{
    const me_module_id module = me_module_add(s->e, parent, name);
    me_module_set_class(s->e, module, class_name);
    return module;
}

static me_module_id add_linear(scene *s, me_module_id parent, const char *name)
{
    const me_module_id module = add(s, parent, name, "Linear");
    const me_frame frame = me_enter(s->e);
    me_tensor *weight =
        me_empty(s->e, "weight", ME_DTYPE_FLOAT32, ME_SHAPE(COLUMNS, COLUMNS));
    weight->requires_grad = true;
    s->weights[module] = me_retain(weight);
    me_leave(s->e, frame, NULL);
    return module;
}

static me_tensor *linear(scene *s, me_module_id module, me_tensor *x)
{
    me_tell_pre_forward(s->e, module, x);
    me_tensor *y = me_functional_linear(s->e, x, s->weights[module], NULL);
    me_tell_post_forward(s->e, module, y);
    return y;
}

static void backward(scene *s, me_tensor *y)
{
    me_tensor *loss = me_sum(s->e, y);
    me_backward(s->e, loss, me_empty_like(s->e, "ones_like", loss));
}

/** Run something as `checkpoint(..., use_reentrant=False)`. */
typedef struct section {
    scene *s;
    me_module_id modules[4];
    me_tensor *(*run)(scene *s, const me_module_id *modules, me_tensor *x);
} section;

static me_tensor *run_section(void *self, me_engine *e, me_tensor *x)
{
    (void)e;
    const section *c = self;
    return c->run(c->s, c->modules, x);
}

static me_tensor *run_linear(scene *s, const me_module_id *modules,
                             me_tensor *x)
{
    return linear(s, modules[0], x);
}

/** Linears, with a ReLU after each; all but the first checkpointed or not. */
static void check_foo(int n, bool is_checkpointed, bool requires_grad)
{
    scene s;
    scene_init(&s);
    const me_module_id foo = add(&s, 0, "foo", "Foo");
    const me_module_id list = add(&s, foo, "linears", "ModuleList");
    section sections[4] = {{.s = NULL}};
    for (int i = 0; i < n; i++) {
        const char name[] = {(char)('0' + i), '\0'};
        sections[i] = (section){.s = &s, .run = run_linear};
        sections[i].modules[0] = add_linear(&s, list, name);
    }
    const me_frame frame = me_enter(s.e);
    me_tensor *x = input(&s, requires_grad);
    me_tell_pre_forward(s.e, foo, x);
    for (int i = 0; i < n; i++) {
        const me_region_function f = {.run = run_section, .self = &sections[i]};
        x = is_checkpointed && i > 0 ? me_region_forward(s.e, &f, x)
                                     : linear(&s, sections[i].modules[0], x);
        x = me_relu(s.e, x);
    }
    me_tell_post_forward(s.e, foo, x);
    backward(&s, x);
    me_leave(s.e, frame, NULL);
    char name[64];
    (void)snprintf(name, sizeof name, "foo_n%d_ac%d_grad%d", n, is_checkpointed,
                   requires_grad);
    scene_fini(&s, name);
}

static void test_foo(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) {
        for (int i = 0; i < 4; i++) {
            check_foo(n, i / 2 == 1, i % 2 == 1);
        }
    }
}

/** Bar: a Linear, and an operation of its own. */
typedef struct bar {
    me_module_id self;
    me_module_id foo;
} bar;

static bar add_bar(scene *s)
{
    bar b = {.self = add(s, 0, "bar", "Bar")};
    b.foo = add_linear(s, b.self, "foo");
    return b;
}

static me_tensor *run_bar(scene *s, bar b, me_tensor *x)
{
    me_tell_pre_forward(s->e, b.self, x);
    me_tensor *y = me_relu(s->e, linear(s, b.foo, x));
    me_tell_post_forward(s->e, b.self, y);
    return y;
}

static void train_bar(scene *s, bar b, bool requires_grad)
{
    const me_frame frame = me_enter(s->e);
    backward(s, run_bar(s, b, input(s, requires_grad)));
    me_leave(s->e, frame, NULL);
}

static void test_bar(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    train_bar(&s, add_bar(&s), true);
    scene_fini(&s, "bar_grad_input");
    scene_init(&s);
    train_bar(&s, add_bar(&s), false);
    scene_fini(&s, "bar_nograd_input");
}

static void test_iterations(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const bar b = add_bar(&s);
    train_bar(&s, b, false);
    train_bar(&s, b, false);
    scene_fini(&s, "bar_two_iters_nograd");
}

/** What a forward without a backward leaves behind comes after the next one's. */
static void test_forward_alone(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const bar b = add_bar(&s);
    const me_frame frame = me_enter(s.e);
    run_bar(&s, b, input(&s, false));
    me_leave(s.e, frame, NULL);
    train_bar(&s, b, false);
    scene_fini(&s, "bar_fw_then_fwbw_nograd");
}

static void test_shared(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const me_module_id two = add(&s, 0, "two", "Two");
    const me_module_id l = add_linear(&s, two, "l");
    const me_frame frame = me_enter(s.e);
    me_tensor *x = input(&s, true);
    me_tell_pre_forward(s.e, two, x);
    me_tensor *y = linear(&s, l, linear(&s, l, x));
    me_tell_post_forward(s.e, two, y);
    backward(&s, y);
    me_leave(s.e, frame, NULL);
    scene_fini(&s, "shared_twice");
}

static void test_roots(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    me_module_id l = add_linear(&s, 0, "l");
    bar b = add_bar(&s);
    const me_frame frame = me_enter(s.e);
    backward(&s, run_bar(&s, b, linear(&s, l, input(&s, false))));
    me_leave(s.e, frame, NULL);
    scene_fini(&s, "two_roots_chain_nograd");
    scene_init(&s);
    l = add_linear(&s, 0, "l");
    b = add_bar(&s);
    const me_frame outer = me_enter(s.e);
    me_tensor *x = input(&s, false);
    backward(&s, linear(&s, l, x));
    backward(&s, run_bar(&s, b, x));
    me_leave(s.e, outer, NULL);
    scene_fini(&s, "two_roots_seq");
}

/** Two roots of one class have one name. */
static void test_roots_of_a_class(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const bar a = add_bar(&s);
    const bar b = add_bar(&s);
    const me_frame frame = me_enter(s.e);
    me_tensor *first = run_bar(&s, a, input(&s, true));
    me_tensor *second = run_bar(&s, b, input(&s, true));
    backward(&s, me_add(s.e, first, second));
    me_leave(s.e, frame, NULL);
    scene_fini(&s, "two_roots_same_class_joint_bw");
}

/** Two blocks of Linear, ReLU and Linear, of modules of their own. */
typedef struct net {
    me_module_id self;
    section blocks[2];
} net;

static me_tensor *run_block(scene *s, const me_module_id *m, me_tensor *x)
{
    me_tell_pre_forward(s->e, m[0], x);
    me_tensor *a = linear(s, m[1], x);
    me_tell_pre_forward(s->e, m[2], a);
    me_tensor *r = me_relu(s->e, a);
    me_tell_post_forward(s->e, m[2], r);
    me_tensor *y = linear(s, m[3], r);
    me_tell_post_forward(s->e, m[0], y);
    return y;
}

static net add_net(scene *s)
{
    net n = {.self = add(s, 0, "net", "Net")};
    const me_module_id list = add(s, n.self, "blocks", "ModuleList");
    for (int i = 0; i < 2; i++) {
        me_module_id *m = n.blocks[i].modules;
        n.blocks[i].s = s;
        n.blocks[i].run = run_block;
        m[0] = add(s, list, i == 0 ? "0" : "1", "Blk");
        m[1] = add_linear(s, m[0], "a");
        m[2] = add(s, m[0], "r", "ReLU");
        m[3] = add_linear(s, m[0], "b");
    }
    return n;
}

static me_tensor *run_net(scene *s, net *n, me_tensor *x, bool is_checkpointed)
{
    me_tell_pre_forward(s->e, n->self, x);
    for (int i = 0; i < 2; i++) {
        const me_region_function f = {.run = run_section,
                                      .self = &n->blocks[i]};
        x = is_checkpointed ? me_region_forward(s->e, &f, x)
                            : run_block(s, n->blocks[i].modules, x);
    }
    me_tell_post_forward(s->e, n->self, x);
    return x;
}

static void test_net(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        scene s;
        scene_init(&s);
        net n = add_net(&s);
        const me_frame frame = me_enter(s.e);
        backward(&s, run_net(&s, &n, input(&s, i % 2 == 1), i / 2 == 1));
        me_leave(s.e, frame, NULL);
        char name[64];
        (void)snprintf(name, sizeof name, "net2_ac%d_grad%d", i / 2, i % 2);
        scene_fini(&s, name);
    }
}

/** A child that runs before its parent is a root until that runs. */
static void test_child_first(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    net n = add_net(&s);
    const me_frame frame = me_enter(s.e);
    backward(&s, run_block(&s, n.blocks[0].modules, input(&s, true)));
    me_leave(s.e, frame, NULL);
    scene_fini(&s, "child_called_first_as_root");
    scene_init(&s);
    n = add_net(&s);
    const me_frame outer = me_enter(s.e);
    me_tensor *x = input(&s, false);
    run_block(&s, n.blocks[0].modules, x);
    backward(&s, run_net(&s, &n, x, false));
    me_leave(s.e, outer, NULL);
    scene_fini(&s, "child_then_parent");
}

static void say(scene *s, const char *what)
{
    me_str_printf(&s->said, "%s\t-\t-\t%d\t", what, me_is_backward(s->e));
    say_parents(s);
}

static void on_gradient(void *self, uint32_t number)
{
    (void)number;
    say(self, "grad_hook");
}

/** Modules a, b.nest and c.0 of two operations, of which c.0 runs first: who
 * runs at each of their operations (in forward), and where their gradients
 * arrive (in backward). */
static void check_hierarchy(bool is_forward)
{
    static const int order[] = {2, 0, 1};
    scene s;
    scene_init(&s);
    s.is_silent = true;
    const me_module_id mod = add(&s, 0, "mod", "Mod");
    const me_module_id linears[] = {
        add_linear(&s, mod, "a"),
        add_linear(&s, add(&s, mod, "b", "ModuleDict"), "nest"),
        add_linear(&s, add(&s, mod, "c", "ModuleList"), "0"),
    };
    for (int round = 0; round < 2; round++) {
        const me_frame frame = me_enter(s.e);
        me_tensor *x = input(&s, false);
        me_tell_pre_forward(s.e, mod, x);
        for (int i = 0; i < 3; i++) {
            const me_module_id l = linears[order[i]];
            me_tell_pre_forward(s.e, l, x);
            x = me_functional_linear(s.e, x, s.weights[l], NULL);
            if (is_forward) {
                say(&s, "op");
            } else {
                assert_null(me_tensor_hook(s.e, x, on_gradient, &s, 0));
            }
            x = me_relu(s.e, x);
            me_tell_post_forward(s.e, l, x);
        }
        me_tell_post_forward(s.e, mod, x);
        backward(&s, x);
        me_leave(s.e, frame, NULL);
    }
    scene_fini(&s, is_forward ? "hierarchy_fw" : "hierarchy_bw");
}

static void test_hierarchy(void **state)
{
    (void)state;
    check_hierarchy(true);
    check_hierarchy(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foo),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_iterations),
        cmocka_unit_test(test_forward_alone),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_roots_of_a_class),
        cmocka_unit_test(test_net),
        cmocka_unit_test(test_child_first),
        cmocka_unit_test(test_hierarchy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
