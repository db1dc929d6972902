// node:test: races that the real program finds, and repairs that it does not blame.
import assert from 'node:assert/strict'
import test from 'node:test'
import { RaceError, race } from 'fakeserver'
import operations from '../operations.cjs'

for (const [name, client] of Object.entries(operations.clients)) {
  test(`a token that is read and then deleted is redeemed twice (${name})`, async () => {
    const error = await race(client.redeem, client.redeem, { setup: client.issue, only: 'isolation' }).catch((error) => error)
    assert.ok(error instanceof RaceError, error)
    const { findings } = error.report
    assert.deepEqual([...new Set(findings.map(({ kind }) => kind))], ['isolation'])
    assert.match(error.message, /GETDEL/i)
    const replayed = await race(client.redeem, client.redeem, { setup: client.issue, only: 'isolation', replay: findings[0].schedule, check: false })
    assert.deepEqual(replayed.findings.map(({ outcome }) => outcome), [findings[0].outcome])
  })

  test(`a token that is read and deleted at once is redeemed once (${name})`, async (t) => {
    const report = await race(client.redeemOnce, client.redeemOnce, { setup: client.issue, only: ['isolation', 'crash', 'expiry'], signal: t.signal })
    assert.deepEqual(report.findings, [])
    assert.ok(report.runs.isolation > 0, report.claim)
  })

  test(`an update is lost between reading and writing (${name})`, async () => {
    const report = await race(client.sell, client.sell, { setup: client.stock, check: false })
    const [finding] = report.findings.filter(({ kind }) => kind === 'isolation')
    assert.equal(finding.cause.key, 'stock')
    assert.deepEqual(finding.differences.map(({ got, expected }) => [got, expected]), [['"4"', ['"3"']]])
  })

  test(`a counter loses nothing (${name})`, async () => {
    await race(client.sellCounted, client.sellCounted, { setup: client.stock, only: ['isolation', 'crash'] })
  })
}
