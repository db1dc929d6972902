export * from './lib/index.cjs'
