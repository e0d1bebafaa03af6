// Convolutions of many runs at once on the tensor cores, bf16 with sums in float32.
//
// A tile is BM consecutive output pixels of a run's batch. In a map with a halo, which is one piece of memory, all their
// windows lie in one contiguous stretch: it is copied to shared memory once, and the places of the window are read
// from there (Triton's version reads it once per place). A block takes every gridDim.x-th tile of its run and copies the
// next stretch while it works on one. Pixels are padded to an odd number of 16-byte pieces, so that eight of them in a
// row hit different banks.
//
// A window of one place may lie in a map with any halo; its pixels are copied one by one, so with a stride those between
// them are not read.
//
// NORM: x is what batch norm was given. Batch norm and ReLU are applied in shared memory, while the next stretch is copied,
// so an activation that only convolutions read is never written. x's halo is then of NaNs: ReLU makes them zeros.
//
// Given by -D: PLACES (window), STRIDE, H, W (output), CI and CO (channels, multiples of 8), WN (row length of the weight
// matrix and of the sums), HALO (of x), NORM, WARPS, MT (tiles of 16 a warp has); `conv` wants SUMS, ADD, MASK, Y_HALO,
// BEFORE_HALO, `conv_weight` wants PIXEL_BLOCK, ACROSS, ROWS, BACK, BEFORE_HALO.

constexpr int TAPS = PLACES * PLACES;
constexpr bool SINGLE = PLACES == 1;
static_assert(SINGLE || HALO == PLACES / 2, "a wider window reads its halo");
constexpr int WIDTH = W * STRIDE + 2 * HALO, HEIGHT = H * STRIDE + 2 * HALO;
constexpr int GROUPS = TAPS * CI / 8;  // the rows of the weight matrix, in eights
constexpr int NT = CO / 8;
constexpr int THREADS = WARPS * 32;

__device__ constexpr int padded(int channels) { return channels / 8 % 2 ? channels : channels + 8; }
__device__ constexpr int pieces(int pixels, int whole) { return (pixels + whole - 1) / whole; }

// How many pixels of a map with a halo the windows of `pixels` outputs may span, without the window of the last.
__device__ constexpr int span(int pixels) {
    return SINGLE ? pixels : pixels * STRIDE + pieces(pixels, W) * (WIDTH - W) * STRIDE +
           pieces(pixels, H * W) * (HEIGHT - H * STRIDE) * WIDTH;
}

constexpr int XS = padded(CI);

// Where output pixel m lies in a map with a halo whose pixels are STEP apart; FIRST is the place of the first.
template <int AROUND, int STEP, int FIRST = AROUND>
__device__ __forceinline__ int pixel_offset(int m) {
    if (AROUND == 0 && STEP == 1) return m;
    int image = m / (H * W), inside = m % (H * W);
    return (image * (H * STEP + 2 * AROUND) + inside / W * STEP + FIRST) * (W * STEP + 2 * AROUND) + inside % W * STEP +
           FIRST;
}

// Where the window of output pixel m begins, in pixels of x.
__device__ __forceinline__ int place(int m) { return pixel_offset<HALO, STRIDE, HALO - PLACES / 2>(m); }

// The same in pixels as they are copied, up to where the first of a tile lies.
__device__ __forceinline__ int copied(int m) { return SINGLE ? m : place(m); }

// Where eight channels of a place of the window lie, in bytes from the window's beginning.
__device__ constexpr int group_offset(int group) {
    int tap = group * 8 / CI;
    return ((tap / PLACES * WIDTH + tap % PLACES) * XS + group * 8 % CI) * 2;
}

template <int CHANNELS>
__device__ __forceinline__ void copy_pixels(u32 to, const bf16* from, int pixels) {
    constexpr int PIECES = CHANNELS / 8;
    for (int i = threadIdx.x; i < pixels * PIECES; i += THREADS)
        copy16(to + (i / PIECES * padded(CHANNELS) + i % PIECES * 8) * 2, from + i * 8);
}

// How many pixels are copied for the windows of output pixels m to end - 1.
__device__ __forceinline__ int copied_pixels(int m, int end) {
    return SINGLE ? end - m : place(end - 1) - place(m) + 1 + (PLACES - 1) * (WIDTH + 1);
}

__device__ __forceinline__ void copy_windows(u32 to, const bf16* x, int m, int end) {
    if (SINGLE) {
        constexpr int PIECES = CI / 8;
        for (int i = threadIdx.x; i < (end - m) * PIECES; i += THREADS)
            copy16(to + (i / PIECES * XS + i % PIECES * 8) * 2, x + place(m + i / PIECES) * CI + i % PIECES * 8);
    } else
        copy_pixels<CI>(to, x + (long long)place(m) * CI, copied_pixels(m, end));
}

__device__ __forceinline__ float lower(u32 both) { return widen(both); }
__device__ __forceinline__ float upper(u32 both) { return widen(both >> 16); }

// Eight neighbouring numbers of shared memory.
__device__ __forceinline__ void read8(float (&to)[8], const float* from) {
    *(float4*)to = *(const float4*)from, *(float4*)(to + 4) = *(const float4*)(from + 4);
}

// Batch norm (scale, shift by channel) and ReLU of copied pixels, in place. The pieces of a thread are all of the same
// channels. AT_ONCE are read before the first is written: the compiler must not move loads over stores.
template <int AT_ONCE>
__device__ __forceinline__ void activate(unsigned char* pixels, int count, const float* norm) {
    constexpr int PIECES = CI / 8, STEP = THREADS / PIECES * XS * 2;
    static_assert(!NORM || THREADS % PIECES == 0, "a thread's pieces would be of different channels");
    float scale[8], shift[8];
    read8(scale, norm + threadIdx.x % PIECES * 8), read8(shift, norm + CI + threadIdx.x % PIECES * 8);
    unsigned char* at = pixels + (threadIdx.x / PIECES * XS + threadIdx.x % PIECES * 8) * 2;
    for (int left = pieces(count * PIECES - (int)threadIdx.x, THREADS); left > 0; left -= AT_ONCE, at += AT_ONCE * STEP) {
        u32 v[AT_ONCE][4];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (k < left) *(uint4*)v[k] = *(const uint4*)(at + k * STEP);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[k][j] = narrow(fmaxf(lower(v[k][j]) * scale[2 * j] + shift[2 * j], 0),
                                 fmaxf(upper(v[k][j]) * scale[2 * j + 1] + shift[2 * j + 1], 0));
            if (k < left) *(uint4*)(at + k * STEP) = *(uint4*)v[k];
        }
    }
}
