// What the declarations allow and refuse, for modules.
import test from 'node:test'
import { type Report, RaceError, race, startServer, useServer } from 'fakeserver'
import * as vitest from 'vitest'

export const servers = [useServer(test), useServer(test, { port: 0 }), useServer(vitest), useServer({ beforeAll: vitest.beforeAll, beforeEach: vitest.beforeEach, afterAll: vitest.afterAll }), useServer()]

export async function races(): Promise<Report> {
  try {
    await race(async (url) => url.length, (url, { role, signal }) => [url, role, signal.aborted])
    await race((url: string) => url, { only: ['crash', 'lost-reply'], setup: async () => {} })
    const kept = race.client((url) => new URL(url))
    await race(() => kept.port + race.url)
    // @ts-expect-error: a kind that there is not
    await race((url) => url, { only: 'isolatoin' })
    // @ts-expect-error: no function
    await race('redis-cli')
  } catch (error) {
    if (error instanceof RaceError) return error.report
    throw error
  }
  return race((url) => url, null as never, { check: false, clock: new Date() })
}

export async function double(): Promise<string> {
  const server = await startServer({ password: 'p', seed: 7n, clock: Date.now() })
  await server.fail('SET', { nth: 2, drop: 'after' })
  await server.fail('*', { always: true, delay: 10 })
  // @ts-expect-error: not both
  await server.fail('SET', { nth: 2, always: true, error: 'ERR no' })
  // @ts-expect-error: no fault
  await server.fail('SET', { nth: 2 })
  const now: number = await server.clock.advance(1000)
  await server[Symbol.asyncDispose]()
  return server.url + String(now)
}
