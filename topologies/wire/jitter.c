#include "jitter.h"

typedef unsigned __int128 wide;

// Quantiles of a half normal distribution that ends at two standard deviations, in units of these two: entry
// i is round(2^30 * z / 2) where z is the normal's quantile at 1/2 + (Phi(2) - 1/2) * i / 256.
enum { CELLS = 256, CELL_BITS = 23, ONE_BITS = 30 };
static const uint32_t HALF_NORMAL[CELLS + 1] = {
    0,          2508807,    5017669,    7526640,    10035776,   12545131,  15054760,  17564718,  20075060,
    22585841,   25097116,   27608940,   30121369,   32634458,   35148262,  37662836,  40178238,  42694521,
    45211743,   47729959,   50249226,   52769600,   55291137,   57813895,  60337929,  62863298,  65390059,
    67918269,   70447986,   72979269,   75512174,   78046762,   80583090,  83121218,  85661206,  88203112,
    90746997,   93292921,   95840944,   98391129,   100943535,  103498225, 106055261, 108614705, 111176619,
    113741068,  116308115,  118877824,  121450259,  124025485,  126603569, 129184575, 131768570, 134355621,
    136945796,  139539163,  142135789,  144735745,  147339100,  149945924, 152556288, 155170264, 157787923,
    160409339,  163034584,  165663734,  168296863,  170934047,  173575362, 176220884, 178870693, 181524866,
    184183483,  186846625,  189514372,  192186807,  194864013,  197546073, 200233073, 202925097, 205622234,
    208324570,  211032195,  213745198,  216463670,  219187704,  221917392, 224652830, 227394112, 230141335,
    232894598,  235654000,  238419641,  241191624,  243970051,  246755029, 249546662, 252345059, 255150329,
    257962582,  260781932,  263608492,  266442378,  269283707,  272132599, 274989175, 277853557, 280725870,
    283606242,  286494800,  289391675,  292297001,  295210912,  298133546, 301065042, 304005542, 306955190,
    309914133,  312882520,  315860503,  318848237,  321845878,  324853587, 327871526, 330899862, 333938763,
    336988401,  340048952,  343120594,  346203510,  349297883,  352403905, 355521766, 358651665, 361793801,
    364948380,  368115609,  371295702,  374488876,  377695353,  380915360, 384149128, 387396894, 390658899,
    393935391,  397226621,  400532848,  403854336,  407191353,  410544178, 413913091, 417298382, 420700347,
    424119288,  427555518,  431009352,  434481118,  437971148,  441479785, 445007381, 448554294, 452120895,
    455707562,  459314685,  462942661,  466591903,  470262831,  473955878, 477671489, 481410122, 485172247,
    488958350,  492768927,  496604492,  500465573,  504352714,  508266477, 512207439, 516176196, 520173364,
    524199575,  528255487,  532341774,  536459136,  540608296,  544789998, 549005017, 553254150, 557538226,
    561858101,  566214662,  570608832,  575041562,  579513846,  584026709, 588581221, 593178491, 597819673,
    602505968,  607238626,  612018948,  616848291,  621728071,  626659762, 631644907, 636685117, 641782076,
    646937547,  652153375,  657431494,  662773933,  668182822,  673660396, 679209009, 684831135, 690529382,
    696306499,  702165389,  708109117,  714140928,  720264256,  726482743, 732800253, 739220895, 745749043,
    752389356,  759146808,  766026716,  773034773,  780177085,  787460209, 794891206, 802477690, 810227888,
    818150709,  826255826,  834553762,  843055996,  851775087,  860724809, 869920324, 879378369, 889117489,
    899158311,  909523873,  920240014,  931335863,  942844422,  954803296, 967255604, 980251128, 993847775,
    1008113477, 1023128676, 1038989639, 1055812965, 1073741824,
};

// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) at place n of its sequence.
uint64_t jitter_draw(uint64_t seed, uint64_t n) {
    uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) >> 32;
}

static uint64_t uniform(uint64_t mean_ns, uint64_t draw) {
    return (uint64_t)((wide)(2 * mean_ns) * draw >> 32);
}

// The highest bit of the draw says on which side of the mean it is, the others how far from it.
static uint64_t normal(uint64_t mean_ns, uint64_t draw) {
    uint64_t cell = draw >> CELL_BITS & (CELLS - 1), within = draw & ((1u << CELL_BITS) - 1);
    uint64_t step = HALF_NORMAL[cell + 1] - HALF_NORMAL[cell];
    uint64_t away = HALF_NORMAL[cell] + (step * within >> CELL_BITS);
    uint64_t away_ns = (uint64_t)((wide)mean_ns * away >> ONE_BITS);
    return draw >> 31 ? mean_ns + away_ns : mean_ns - away_ns;
}

// The largest number whose cube is not above.
static uint64_t cube_root(uint64_t cube) {
    uint64_t root = 0;
    for (int shift = 63; shift >= 0; shift -= 3) {
        root *= 2;
        uint64_t more = 3 * root * (root + 1) + 1;
        if (cube >> shift >= more) {
            cube -= more << shift;
            root++;
        }
    }
    return root;
}

// x = 37/18 * mean * (u^(-1/3) - 1), u from 1/1000 to 1, so that the mean is exact; the root has 18 bits of
// fraction.
static uint64_t pareto(uint64_t mean_ns, uint64_t draw) {
    enum { FRACTION = 18 };
    wide inverse = ((wide)1000 << (32 + 3 * FRACTION)) / ((1ull << 32) + 999 * draw);
    uint64_t beyond = cube_root((uint64_t)inverse) - (1u << FRACTION);
    return (uint64_t)((wide)mean_ns * 37 * beyond / 18 >> FRACTION);
}

bool jitter_is_right(const struct jitter *jitter) {
    return jitter->law <= JITTER_PARETO && jitter->mean_ns <= JITTER_MOST_MEAN_NS &&
           (jitter->law == JITTER_NONE) == (jitter->mean_ns == 0);
}

uint64_t jitter_ns(const struct jitter *jitter, uint64_t n) {
    switch (jitter->law) {
    case JITTER_UNIFORM:
        return uniform(jitter->mean_ns, jitter_draw(jitter->seed, n));
    case JITTER_NORMAL:
        return normal(jitter->mean_ns, jitter_draw(jitter->seed, n));
    case JITTER_PARETO:
        return pareto(jitter->mean_ns, jitter_draw(jitter->seed, n));
    case JITTER_NONE:
        break;
    }
    return 0;
}
