// vitest: the same two lines, with its hooks.
import { RaceError, race, useServer } from 'fakeserver'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import operations from '../operations.cjs'

const server = useServer({ beforeAll, beforeEach, afterAll })

describe.each(Object.entries(operations.clients))('%s', (_name, client) => {
  test('a token is redeemed once', { timeout: 60_000 }, async ({ signal }) => {
    await race(client.redeemOnce, client.redeemOnce, { setup: client.issue, only: 'isolation', signal })
  })

  test('a race is found', { timeout: 60_000 }, async () => {
    await expect(race(client.redeem, client.redeem, { setup: client.issue, only: 'isolation' })).rejects.toThrow(RaceError)
  })

  test('the double is there', async () => {
    await client.issue(server.url)
    expect(await client.redeem(server.url)).toBe('ada')
    expect(await client.redeem(server.url)).toBe(null)
  })

  test('and empty', async () => {
    expect(await server.dump()).not.toMatch(/token/)
    await client.issue(server.url)
  })
})
