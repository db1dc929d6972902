// Jest in its default set-up: CommonJS, hooks among the globals.
const { RaceError, race, useServer } = require('fakeserver')
const { clients } = require('../operations.cjs')

const server = useServer()

describe.each(Object.entries(clients))('%s', (_name, client) => {
  test('a token is redeemed once', async () => {
    await race(client.redeemOnce, client.redeemOnce, { setup: client.issue, only: 'isolation' })
  }, 60_000)

  test('a race is found', async () => {
    await expect(race(client.redeem, client.redeem, { setup: client.issue, only: 'isolation' })).rejects.toThrow(RaceError)
  }, 60_000)

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
