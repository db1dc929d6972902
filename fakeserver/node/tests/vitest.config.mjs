// Machines of CI may be slow: what a test here does takes some milliseconds.
export default { test: { include: ['vitest/*.test.mjs'], testTimeout: 60_000, hookTimeout: 60_000 } }
