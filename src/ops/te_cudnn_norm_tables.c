/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_cudnn_norm_tables.h"

/* On an H200 with cuDNN 9.19. Of float16, what differs from bfloat16 in 348
 * shapes: three. */

static const me_te_measured_norm rms_backward[] = {
    {64,
     "p...p...pp.ppp.hhh.hhh.hhh.hhh.hhh.hhh.hhh.hhh.hh...h...h...h...h...h"},
    {128,
     "n...n...nn.nnn.nnn.hhh.hhh.hfh.hkh.hhh.hhh.hmh.hh...h...h...h...h...h"},
    {192, "p...p...pp.pp..hh..hhh.hhh.hhh.hhh.hhh.hh..hh...h...h...h...h...h"},
    {256, "o...o...oo.oon.nnn.hhh.hhh.hhh.hhh.hhh.hhh.hhh.ff...f...f...f...f"},
    {320, "p...p...p...p...f...h...h...h...h...h...h...h...h"},
    {384, "n...n...n...n...n...h...h...h...h...h...h...h...h"},
    {512, "o...o.o.oooooeeeeeeeeeeeeeeeehhhhhhhhhhhhhhhhh.hh"},
    {576, "p...p.p.pppppppffhh.ffh.f.hffhhhhhhhhhhhhhhhhh..h"},
    {640, "n...n...n...n...n...f...f...f...h...h...h...h...h"},
    {768, "o...o.o.oooooeeeeeeeeeeeeehffhhhhhhhhhhhhhhhhh.hh"},
    {896, "n...n.n.nnnnnppnnnnfffhff.hff.h.hhhhhhhhhhhhhh.hh"},
    {1024, "o...o.o.ooooocceececeeeeefhffhhhhhhhhhhhhhhhhh.hh"},
    {1152, "n...n.n.n.nnnppnnhhfffhfffhffhh.hhh.h.hhhhhhhh.hh"},
    {1280, "o...o.o.o.ooo.p.eeeeeeeeffhff.hhhhhhh.hhh.h.hh.hh"},
    {1408, "n...n...n...n...n...f...f...f...h...h...h...h...h"},
    {1536, "o...o.o.ooooocceececcehfffhffhhhhhhhhhhhhhhhhh.hh"},
    {1792, "o...o.o.ooooopp.eee.e.hefhhfhhhhhhh.hhhhhhh.hh..h"},
    {1920, "p...p...p...p...f...f...f...f...f...f...f...f...f"},
    {2048, "r...r.r.rnnnrcciiciciiifcffffccchhhhhhhhhhhhhh.hh"},
    {2304, "r...r.r.rrrrr.hiiiiii.iii.f.fhfhhhhhhhhhh.hhh..hh"},
    {2560, "r...r.r.rnnnrcciiciciiiiiiifhhchhhhhhhhhhhhhhh..h"},
    {2816, "r...r.r.r.r.r.h.i.i.i.i.i.i.h.h.h.h.h.h.h.h.h...h"},
    {2880, "-...-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-...-"},
    {3072, "r...r.r.rnnnrcciiciciiiiiiiihhcchhcchhchhhcccc..c"},
    {3328, "r...r.r.r.c.r.h.i.i.i.i.i.i.h.h.h.h.h.h.h.h.h...h"},
    {3584, "r...r.r.rcc.rcciici.iii.ihc.hcc.c.ccccc.ccccc...c"},
    {3840, "r...r...r...c...c...c...h...h...h...h...h...h...h"},
    {4096, "p...p.p.pcccccccccccccccchccccccccccccccccccc...c"},
    {4608, "p...p.p.p.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {5120, "p...p.p.pcccccccccccccccccccccccccccccccccc.c"},
    {5376, "s...s.p.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {6144, "p...p.p.pcccccccccccccccccccccccccccccccccc.c"},
    {6656, "p...p.p.p.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.i"},
    {7168, "s...s.p.c.c.ccccc.ccccccc.ccc.ccc.ccc.c.c.c.c"},
    {7680, "s...s.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {8192, "s...s.c.ccccccccccccccccccccccccccccccccc.c.c"},
    {9216, "s...s.c.c.c.ccc.c.ccccc.ccccccc.c.c.c.c.c.c"},
    {10240, "s...s.c.c.c.c.c.c.ccc.c.ccccc.ccccccc.c.c.c"},
    {12288, "s...s.c.ccccccccccccccccccccccccccccccc.c"},
    {14336, "s...s.c.ccccccc.c.c.c.c.c.c.c.ccccc.c.c.c"},
    {16384, "u...b.a.aaaaaaaaaaaaaaaaaaaaaaaaaaaaa.a.a"},
    {18432, "u...b.b.bbbbb.bbbbbbb.b.b.b.b.b.b.b.b.b"},
    {20480, "u...b...a...a...a...a...a...a...a...a"},
    {0, NULL},
};

static const me_te_measured_norm layer_backward[] = {
    {64,
     "t...t...tt.ttt.ttl.lll.lll.lll.lll.lll.lll.lll.ll...l...l...l...l...l"},
    {128,
     "n...n...nn.nnc.ccc.ccc.hhl.hhh.hhh.hhh.hhh.hhh.hh...h...h...h...h...l"},
    {192, "t...t...t...t...t...l...l...l...l...l...l...l...l...l...l...l...l"},
    {256, "n...n...nn.nnq.qqj.jjj.jjj.jjj.jjj.jjj.jjj.jjj.jl...l...l...l...l"},
    {320, "t...t...t...t...t...l...l...l...l...l...l...l...l"},
    {384, "n...n...n...n...c...c...c...l...l...l.......l...l"},
    {512, "n...n.n.nnnnnccccccccccccccccjjjjjjjjjjjjj.jll.ll"},
    {576, "t...t.t.t.t.t.t.j...l.l.l.l.l.l.l.l.l.l.l.l.l"},
    {640, "n...n...n...n...c...c...c...c...c...l...l...l...l"},
    {768, "n...n.n.nnnnncccccccccccccjjjjjjjjjjjjjjjlllll.ll"},
    {896, "n...n.n.n.n.n...c.c.c.c.c.c.c.c.l.l.l.l.l.l.l...l"},
    {1024, "n...n.n.nnnnnccccccccccccjjjjjjjjjjjjjjjll.lll.ll"},
    {1152, "n...n.n.n...n.c.c.c.c.c.c.c.c.l.l.l.l.l.l.l.l...l"},
    {1280, "n...n.n.n.n.n.c.c.c.c.c.j.j.j.j.j.j.j...l...l...l"},
    {1408, "n...n...n...n...c...c...c...l...l...l...l...l...l"},
    {1536, "n...n...nnnnncccccccccjcjjjjjjjjjjjjjlllllllll.ll"},
    {1792, "s...s.q.q.q.q.c.g.g.g.g.l.l.l.l.l...l.l.l.l.l...l"},
    {1920, "p...p...p...p...h...h...h...h...h...h...h...h...h"},
    {2048, "s...s.c.cccccccccccccccccccccccchhhhhhhhhhhhhh.hh"},
    {2304, "s...s.c.c.c.c.c.c.c.c.c.c.c.c...h.h.h.h.h.h.....h"},
    {2560, "s...s.c.cccccccccccccccccccchcchhhhhhhhhhhhhhh..h"},
    {2816, "s...s.c.c.c.c.c.c.c.c.c.c...h.c.h.h.h.h.h.h.h...h"},
    {2880, "-...-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-.-...-...-"},
    {3072, "s...s.c.cccccccccccccc.ccccchhfhhhhhhhhhhhhhhh..f"},
    {3328, "s...s.c.c.c.c.c.c.c.c.c.c.c.h.c.h.h.h.h.h...h...h"},
    {3584, "s...s.c.c.c.c.c.c...c.c.c.c.h.f.f.f.h.f.f.f.f"},
    {3840, "s...s...c...c...c...c...c...h...h...h...h...h...h"},
    {4096, "s...s.p.ccccccccccccccccchffhfffffffff.cccccc...c"},
    {4608, "s...s.p.c.c.c...c.c.c.c.c.f.f.f.f.f.f.f.f.f.f"},
    {5120, "s...s.p.cccccccccccccccfffffffffffffffffff..f"},
    {5376, "s...s.p.c...c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {6144, "s...s.p.cccccccccccccfffffffffffffffcc.ccc..c"},
    {6656, "s...s...c.c.c.c.c.c.c.c.c.c.f.f.f.f.f.f.f.f.f"},
    {7168, "s...s.c.c.c.c.c.c.c.c.c.c.c.f.f.f...f.f.f.f.f"},
    {7680, "s...s.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {8192, "s...s.c.cccccccccccccccccccccc.cccccccccc.c"},
    {9216, "s...s.c.c.c.c.c.c.c.c.c.c.c.a.a.a.a.a.a.a.a"},
    {10240, "s...s.c.c.c.c.c.c.c.c.c.c...c.c.c.a.a.a.a.a"},
    {12288, "s...s.c.cccccccccccccccaaaaaaaaaaaaaaaa.a"},
    {14336, "v...v.a.g.g.a.a.a.a.a...a.a.a.a.a.a.a.a.a"},
    {16384, "v...d.d.ddddaaaaaaaaaaaaaaaaaaaaaaaaa...a"},
    {18432, "v...d.d.d.d.a.a.a...a.a.a.a.a.a.a.a.a.a"},
    {20480, "v...d...d...a...a...a...a...a...a...a"},
    {0, NULL},
};

/* With SMs left to others, of any number: Transformer Engine tells cuDNN how many
 * there are, which knows fewer kernels then. */

static const me_te_measured_norm rms_margin_backward[] = {
    {64, "s...c.......c.......c.......c...........c"},
    {128, "....n.......c.......c.......c...........c"},
    {256, "....o.......e.......e.......e...........e"},
    {512, "....o.......e.......e.......e...........e"},
    {1024, "o...o.......e.......e.......e...........c"},
    {2048, "....p.......c.......c.......c...........c"},
    {2880, "............c...........................c"},
    {3072, "....p.......c.......c.......c...........c"},
    {4096, "p...p.......c.......c.......c...........c"},
    {5120, "....p.......c.......c.......c...........c"},
    {8192, "....c.......c.......c.......c...........c"},
    {0, NULL},
};

static const me_te_measured_norm layer_margin_backward[] = {
    {64, "....c.......c.......c.......c...........c"},
    {128, "....n.......c.......c.......c...........c"},
    {256, "....n.......c.......c.......c...........c"},
    {512, "....n.......c.......c.......c...........c"},
    {1024, "....n.......c.......c.......c...........c"},
    {2048, "....c.......c.......c.......c...........c"},
    {2880, "............c...........................c"},
    {3072, "....c.......c.......c.......c...........c"},
    {4096, "....c.......c.......c.......c...........c"},
    {5120, "....c.......c.......c.......c...........c"},
    {8192, "....c.......c.......c.......c...........c"},
    {0, NULL},
};

static const me_te_measured_norm rms_float16_backward[] = {
    {128,
     "n...n...nn.nnn.nnn.hhh.hhh.hhh.hkh.hhh.hhh.hmh.hh...h...h...h...h...h"},
    {1536, "o...o.o.ooooocceececeehfffhffhhhhhhhhhhhhhhhhh.hh"},
    {2048, "r...r.r.rnnnrcciiciciiiffffffccchhhhhhhhhhhhhh.hh"},
    {0, NULL},
};

static const me_te_measured_norm rms_float32_backward[] = {
    {64, "p.p.p.p.p.p.p.p.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h...h.h"},
    {128, "o.o.o.o.o.o.o.n.n.n.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h"},
    {192, "p...p...p...p...h...h...h...h...h...h...h...h...h...h...h"},
    {256, "o.o.o.o.o.o.o.n.n.n.e.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h.h"},
    {512, "o.o.o.o.o.o.o.e.e.e.e.e.e.h.f.h.h.h.h.h.h.h.h.h.h...h"},
    {576, "p...p.......p...f...f...f...f...h...h...h...h...h"},
    {768, "o.o.o.o.o.o.o.c.e.e.e.e.e.h.f.h.h.h.h.h.h.h.h.h.h"},
    {896, "o...o...o...o...e...e...e...f...h...h...h"},
    {1024, "o.o.o.o.o.o.o.c.e.e.e.h.f.h.f.h.h.h.h.h.h.h.h.h.h"},
    {1152, "o...o...o...o...e...e...f...f...h...h...h...h"},
    {1280, "o.......o...o...e...e...f...f...h...h...h...h"},
    {1536, "o.o.o.o.o.o.o.c.e.e.e.h.f.h.f.h.h.h.h.h.h.h.h"},
    {1792, "r...r...r...r...i...i...i...f...f...f...f...f"},
    {2048, "r.r.r.r.r.n.r.c.i.i.i.i.i.i.h.c.h.h.h.h.h.h.h"},
    {2304, "r...r...r...r...i...i...i...h...h...h"},
    {2560, "r.r.r.r.r.n.r.c.i.i.i.i.i.i.h.c.c.c.c.c.c.c"},
    {2816, "............r...i...i...i...h"},
    {2880, "............-...-...-...-...-"},
    {3072, "p.p.p.p.p.n.n.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {3328, "............c...c...c...c...h"},
    {3584, "....p...p...c...c...c...c...c...c...c"},
    {4096, "p.p.p.p.p.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {4608, "............c...c...c...c...c"},
    {5120, "p.p.p.p.p.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {5376, "............c...c...c...c...c"},
    {6144, "s.s.s.p.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {6656, "............c...c...c...c...c"},
    {7168, "s...s...c...c...c...c...c...c...c...c"},
    {7680, "............c...c...c...c...c"},
    {8192, "s.s.s.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c.c"},
    {9216, "s...s...c...c...c...c...c...c...c"},
    {10240, "s...s...c...c...c...c...c...c...c"},
    {12288, "u.x.u.a.a.a.a.a.a.a.a.a.a.a.a.a.a"},
    {14336, "u...u...a...a...a...a...a...a...a"},
    {16384, "u.u.b.a.a.a.a.a.a.a.a.a.a.a.a.a.a"},
    {18432, "u...a...a...a...a...a...a...a"},
    {0, NULL},
};

static const me_te_measured_norm layer_float32_backward[] = {
    {64, "t.t.t.t.t.t.t.t.t.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l"},
    {96, "s...s...s...v.......w...w...w...w...w...w"},
    {128, "n.n.n.n.n.n.n.q.q.j.j.j.j.j.j.j.j.h.h.h.h.h.h.h.h.h.h.h.h.l"},
    {160, "s...s...s...v.......w...w...w...w...w...w"},
    {192, "t...t...t...t...t.......l...l.......l"},
    {224, "s...........v.......w.......w...........w"},
    {256, "n.n.n.n.n.n.n.c.c.c.j.j.j.j.j.j.j.j.j.j.j.j.j.l.l.l.l...l"},
    {288, "s...........v.......w.......w...........w"},
    {352, "s...........v.......w.......w...........w"},
    {480, "s...........h.......h.......h...........w"},
    {512, "n.n.n.n.n.n.n.c.c.c.c.c.c.c.j.j.j.j.j.j.j.l.l.l.l.l.l"},
    {544, "s...........h.......h.......h...........w"},
    {576, "t...t...t.......j...l.......l...l...l"},
    {768, "n.n.n.n.n.n.n.c.c.c.c.c.c.j.j.j.j.j.j.j.l.l.l.l.l"},
    {896, "n...n...n...n.......c...j.......j...j"},
    {1024, "n.n.n.n.n.n.n.c.c.c.c.c.j.j.j.j.j.j.j.l.l.l.l.l.l"},
    {1056, "s...........v.......w.......w...........w"},
    {1152, "n...n.......n...c...c...j...j...j...j"},
    {1280, "n...n...n...n.......c...j.......j...j"},
    {1536, "n.n.n.n.n.n.n.c...c.c.j.j.j...j.j.j.l.l.l.l.l"},
    {1792, "s...s...c...c...c.......l...l...l...l"},
    {2048, "s.s.s.c.c.c.c.c.c.c...c.c.c.h.c.h.h.h.h.h.h.c"},
    {2080, "-...........-.......-.......-...........-"},
    {2304, "s.......c...c...c...c...c...h...h...h"},
    {2560, "s.s.s.c.c.c.c.c.c.c...c.c.c.h.f.h.f.h.f.f.f"},
    {2816, "............c...c.......c...h"},
    {2880, "................-...-.......-"},
    {3072, "s.s.s.p.c.c...c.c.c.c.c...f.h.f.f.f.f.c.c"},
    {3328, "............c...c...c...c...f"},
    {3584, "s...s...c.......c...c.......f...f...f"},
    {4096, "s.s.s.p.c.c...c.c.c.c.c...c.c.f.c.c.c.c.c"},
    {4128, "-...........-.......-.......-"},
    {4608, "............c.......c...c"},
    {5120, "s.s.s.p.c.c.c.c...c.c.c.c.c...c.c.c.c.c"},
    {5376, "............c...c...c...c...c"},
    {6144, "s.s.s.p.c.c.c.c...c.c.c.c.c...c.c.c.c"},
    {6656, "............c.......c...c"},
    {7168, "s...s...c...c...c.......c...c...j...j"},
    {7680, "............c...c.......c...c"},
    {8192, "s.s.s.c.c.c.c.c.c.c.c.c.c.a.a.a.a.a.a"},
    {9216, "....s...c...c...c.......a...a...a"},
    {10240, "s...s...c...c...c.......a...a...a"},
    {12288, "s.s.s.a.c.c...a.a.a.a.a...a.a.a.a"},
    {14336, "s...a...a.......a...a.......a...a"},
    {16384, "v.d.d.d.d.a.a.a.a.a.a.a.a.a.a.a.a"},
    {18432, "v...d...d.......a...a.......a"},
    {0, NULL},
};

const me_te_measured_norm *me_te_measured_norms(const me_te_norm_call *call)
{
    if (call->margin > 0) {
        return call->is_layer_norm ? layer_margin_backward
                                   : rms_margin_backward;
    }
    if (call->dtype == ME_DTYPE_FLOAT32) {
        return call->is_layer_norm ? layer_float32_backward
                                   : rms_float32_backward;
    }
    return call->is_layer_norm ? layer_backward : rms_backward;
}

const char *me_te_measured_norm_kernels(const me_te_norm_call *call,
                                        const me_te_measured_norm *norm)
{
    const me_te_measured_norm *other = rms_float16_backward;
    if (call->is_layer_norm || call->dtype != ME_DTYPE_FLOAT16 ||
        call->margin > 0) {
        return norm->kernels;
    }
    while (other->columns != 0 && other->columns != norm->columns) {
        other++;
    }
    return other->columns == 0 ? norm->kernels : other->kernels;
}
