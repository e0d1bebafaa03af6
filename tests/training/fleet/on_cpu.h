// A GPU's block on the CPU: each thread is a fiber, warps meet where their instructions do. Slow, exact, for tests.
// Given by -D: SHARED, the bytes of shared memory that a launch asks for.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __align__(n) __attribute__((aligned(n)))

typedef unsigned short bf16;
typedef unsigned int u32;
struct uint2 { u32 x, y; };
struct uint4 { u32 x, y, z, w; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct Index { int x, y; };
using std::min;

static inline float2 make_float2(float x, float y) { return {x, y}; }

unsigned char memory[232448] __align__(16);  // the block's shared memory
static Index threadIdx, blockIdx, gridDim;

struct Warp {
    int arrived = 0, round = 0;
    u32 at[32], a[32][4], b[32][2];
    float x[32];
};

static std::vector<Warp> warps;
static Warp everyone;
static std::vector<ucontext_t> fibers;
static std::vector<bool> done, held;  // held: by the block's barrier
static ucontext_t scheduler;

static void pause() {
    int me = threadIdx.x;
    swapcontext(&fibers[me], &scheduler);
    threadIdx.x = me;
}

static void meet(Warp& where, int count) {
    int round = where.round;
    if (++where.arrived == count) {
        where.arrived = 0;
        where.round++;
        if (&where == &everyone) held.assign(count, false);
    }
    while (where.round == round) pause();
}

static void __syncthreads() {
    held[threadIdx.x] = true;
    meet(everyone, (int)fibers.size());
}
static Warp& warp_of() { return warps[threadIdx.x / 32]; }
static void __syncwarp() { meet(warp_of(), 32); }

static u32 shared_address(const void* p) { return (u32)((const unsigned char*)p - memory); }

static bf16 element(u32 row_at, int column) {
    bf16 x;
    memcpy(&x, memory + row_at + column * 2, 2);
    return x;
}

static void load_matrices(u32 (&r)[4], u32 at, bool turned) {
    Warp& w = warp_of();
    int lane = threadIdx.x % 32;
    if (at % 16) abort();
    w.at[lane] = at;
    meet(w, 32);
    for (int j = 0; j < 4; j++) {
        int one = lane / 4, two = lane % 4 * 2;
        bf16 low = turned ? element(w.at[j * 8 + two], one) : element(w.at[j * 8 + one], two);
        bf16 high = turned ? element(w.at[j * 8 + two + 1], one) : element(w.at[j * 8 + one], two + 1);
        r[j] = low | (u32)high << 16;
    }
    meet(w, 32);
}

static void load4(u32 (&r)[4], u32 at) { load_matrices(r, at, false); }
static void load4_turned(u32 (&r)[4], u32 at) { load_matrices(r, at, true); }

static float __uint_as_float(u32 x) {
    float f;
    memcpy(&f, &x, 4);
    return f;
}

static float widen(bf16 x) { return __uint_as_float((u32)x << 16); }

static u32 rounded(float x) {  // to nearest, ties to even
    u32 bits;
    memcpy(&bits, &x, 4);
    if (std::isnan(x)) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static u32 narrow(float low, float high) { return rounded(low) | rounded(high) << 16; }

static void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    Warp& w = warp_of();
    int lane = threadIdx.x % 32;
    memcpy(w.a[lane], a, 16);
    w.b[lane][0] = b0, w.b[lane][1] = b1;
    meet(w, 32);
    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + i / 2 * 8, n = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) {
            u32 of_a = w.a[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], of_b = w.b[n * 4 + k % 8 / 2][k / 8];
            c[i] += widen(of_a >> k % 2 * 16) * widen(of_b >> k % 2 * 16);
        }
    }
    meet(w, 32);
}

struct Copy { u32 to; const void* from; };
static std::vector<std::vector<Copy>> copies;  // by thread: those on their way

// Until they are waited for there is nothing but NaNs where they go: nobody may read there, before or still.
static void copy16(u32 to, const void* from) {
    if (to % 16 || (uintptr_t)from % 16 || to + 16 > sizeof memory) abort();
    memset(memory + to, 0xff, 16);
    copies[threadIdx.x].push_back({to, from});
}

static void wait_for_copies() {
    for (const Copy& one : copies[threadIdx.x]) memcpy(memory + one.to, one.from, 16);
    copies[threadIdx.x].clear();
}

static void expect(const void* from, int bytes) {
    if ((uintptr_t)from % 16 || bytes % 16 || bytes <= 0) abort();
}

static float from_lane_across(float x, int distance) {
    Warp& w = warp_of();
    int lane = threadIdx.x % 32;
    w.x[lane] = x;
    meet(w, 32);
    float other = w.x[lane ^ distance];
    meet(w, 32);
    return other;
}

static std::function<void()> kernel_call;

static void fiber() {
    int me = threadIdx.x;
    kernel_call();
    done[me] = true;
    threadIdx.x = me;
    swapcontext(&fibers[me], &scheduler);
}

static void launch(int blocks, int runs, int threads, std::function<void()> call) {
    const size_t STACK = 64 << 10;
    kernel_call = call;
    gridDim = {blocks, runs};
    std::unique_ptr<char[]> stacks(new char[threads * STACK]);
    for (int run = 0; run < runs; run++)
        for (int block = 0; block < blocks; block++) {
            blockIdx = {block, run};
            memset(memory, 0xff, sizeof memory);  // nothing may rely on what lies there: these are NaNs
            fibers.assign(threads, ucontext_t());
            done.assign(threads, false);
            held.assign(threads, false);
            copies.assign(threads, {});
            warps.assign(threads / 32, Warp());
            everyone = Warp();
            for (int i = 0; i < threads; i++) {
                getcontext(&fibers[i]);
                fibers[i].uc_stack.ss_sp = stacks.get() + i * STACK;
                fibers[i].uc_stack.ss_size = STACK;
                fibers[i].uc_link = nullptr;
                makecontext(&fibers[i], fiber, 0);
            }
            // a warp goes on until a barrier holds it, the last one first in every second block: what lacks one shows
            for (int left = threads, next = 0; left; next = (next + 1) % (threads / 32)) {
                int first = (block % 2 ? threads / 32 - 1 - next : next) * 32;
                for (bool moved = true; moved;) {
                    moved = false;
                    for (int i = first; i < first + 32; i++)
                        if (!done[i] && !held[i]) {
                            threadIdx.x = i;
                            swapcontext(&scheduler, &fibers[i]);
                            left -= done[i];
                            moved = true;
                        }
                }
            }
            for (size_t i = SHARED; i < sizeof memory; i++)  // what the launch asks for is all there is
                if (memory[i] != 0xff) abort();
        }
}
