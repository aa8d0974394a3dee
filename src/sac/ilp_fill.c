/* SPDX-License-Identifier: BSD-3-Clause */
/* With the modules chosen, what is left is to buy bytes: each module's first ones
 * are cheapest, and of what precedes the earliest need all that is bought for it
 * serves the later ones too. So for one need after the other the cheapest bytes are
 * the best there are. */
#include "sac/ilp_impl.h"

#include <math.h>
#include <string.h>

/** Bytes of which rounding makes some or none. */
static const double FEW_BYTES = 1e-3;

/** What is left to do counts as done: the solver's tolerance is a tenth. */
static const double DONE = 1e-6;

/** What is given up already before each position. */
static double given_before(const me_sac_ilp *p, uint32_t position)
{
    double bytes = 0;
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        if (p->candidates[c].position < position) {
            bytes += p->bytes[c];
        }
    }
    return bytes;
}

static double milliseconds(const me_sac_candidate *c, double bytes)
{
    double most = 0;
    for (uint32_t l = 0; l < c->n_lines; l++) {
        most = fmax(most, c->base[l] + c->price[l] * bytes);
    }
    return most;
}

/** The line that counts beyond @p bytes: where two meet, the steeper one. */
static uint32_t line_beyond(const me_sac_candidate *c, double bytes)
{
    const double most = milliseconds(c, bytes);
    const double near =
        most - 1e-12 * fmax(most, fabs(c->base[c->n_lines - 1]));
    uint32_t best = c->n_lines;
    for (uint32_t l = 0; l < c->n_lines; l++) {
        if (c->base[l] + c->price[l] * bytes >= near &&
            (best == c->n_lines || c->price[l] > c->price[best])) {
            best = l;
        }
    }
    return best;
}

/** Where the line @p l ends: at a steeper one, at M, or where nothing is left. */
static double line_end(const me_sac_candidate *c, uint32_t l)
{
    double end = c->act_bytes;
    for (uint32_t o = 0; o < c->n_lines; o++) {
        if (c->price[o] > c->price[l]) {
            end = fmin(end,
                       (c->base[l] - c->base[o]) / (c->price[o] - c->price[l]));
        }
    }
    if (c->price[l] > 0) {
        end = fmin(end, (ME_SAC_MOST_MS - c->base[l]) / c->price[l]);
    }
    return end;
}

/** What @p c can give up more at one price, and the limits allow. */
static double room_of(const me_sac_ilp *p, uint32_t c, uint32_t line)
{
    const me_sac_candidate *candidate = &p->candidates[c];
    double room = line_end(candidate, line) - p->bytes[c];
    for (uint32_t i = 0; i < p->n_caps && room > FEW_BYTES; i++) {
        const me_sac_bound *cap = &p->caps[i];
        if (candidate->position < cap->position) {
            room = fmin(room, cap->bytes - given_before(p, cap->position));
        }
    }
    return room;
}

typedef struct offer {
    bool is_there;
    uint32_t candidate;
    double price;
    double room;
} offer;

/** The cheapest bytes of candidates before @p position: of like prices, the first
 *  candidate's. */
static offer find_offer(const me_sac_ilp *p, uint32_t position)
{
    offer best = {.price = HUGE_VAL};
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        const me_sac_candidate *candidate = &p->candidates[c];
        if (!p->chosen[c] || candidate->position >= position) {
            continue;
        }
        const uint32_t line = line_beyond(candidate, p->bytes[c]);
        const double price = candidate->price[line];
        if (best.is_there &&
            price >= best.price - ME_SAC_TIE * fabs(best.price)) {
            continue;
        }
        const double room = room_of(p, c, line);
        if (room > FEW_BYTES) {
            best = (offer){true, c, price, room};
        }
    }
    return best;
}

/** Where time falls with what is given up, more than is needed. */
static void take_what_pays(me_sac_ilp *p)
{
    for (;;) {
        const offer o = find_offer(p, UINT32_MAX);
        if (!o.is_there || !(o.price < 0)) {
            return;
        }
        p->bytes[o.candidate] += o.room;
    }
}

bool me_sac_fill(me_sac_ilp *p, double *ms_out)
{
    memset(p->bytes, 0, p->n_candidates * sizeof *p->bytes);
    for (uint32_t i = 0; i < p->n_needs; i++) {
        const me_sac_bound *need = &p->needs[i];
        double lack = need->bytes - given_before(p, need->position);
        while (lack > FEW_BYTES) {
            const offer o = find_offer(p, need->position);
            if (!o.is_there) {
                break;
            }
            p->bytes[o.candidate] += fmin(lack, o.room);
            lack = need->bytes - given_before(p, need->position);
        }
        if (lack > DONE * p->unit_bytes + FEW_BYTES) {
            return false;
        }
    }
    take_what_pays(p);
    double ms = 0;
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        if (p->chosen[c]) {
            ms += milliseconds(&p->candidates[c], p->bytes[c]);
        }
    }
    *ms_out = ms;
    return true;
}
