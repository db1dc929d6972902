// The implementation is a CommonJS module, so that suites which are not modules (Jest's default) can load it too, and both get the same classes.
export { RaceError, race, startServer, useServer } from './lib/index.cjs'
