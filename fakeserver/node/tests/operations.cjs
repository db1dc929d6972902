'use strict'
// Work of an application, each piece on clients of its own: with a fault, and repaired.
const { Redis } = require('ioredis')
const { createClient } = require('redis')

async function withIoredis(url, work) {
  const client = new Redis(url)
  client.on('error', () => {})
  try {
    return await work(client)
  } finally {
    client.disconnect()
  }
}

async function withNodeRedis(url, work) {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    client.destroy()
  }
}

const ioredis = {
  issue: (url) => withIoredis(url, (client) => client.set('token:1', 'ada')),

  // Two that read before either deletes both get in.
  redeem: (url) =>
    withIoredis(url, async (client) => {
      const user = await client.get('token:1')
      if (user !== null) await client.del('token:1')
      return user
    }),

  redeemOnce: (url) => withIoredis(url, (client) => client.getdel('token:1')),

  stock: (url) => withIoredis(url, (client) => client.set('stock', 5)),

  // What another one sells between the reading and the writing is not counted.
  sell: (url) =>
    withIoredis(url, async (client) => {
      const left = Number(await client.get('stock'))
      await client.set('stock', left - 1)
    }),

  sellCounted: (url) => withIoredis(url, async (client) => void (await client.decr('stock'))),

  // A crash in between leaves a job that is known and never done.
  enqueue: (url) =>
    withIoredis(url, async (client) => {
      if (await client.sadd('jobs:known', '7')) await client.rpush('jobs', '7')
    }),

  enqueueAtOnce: (url) => withIoredis(url, async (client) => void (await client.multi().sadd('jobs:known', '7').rpush('jobs', '7').exec())),

  jobs: (url) => withIoredis(url, (client) => client.llen('jobs')),
}

const nodeRedis = {
  issue: (url) => withNodeRedis(url, (client) => client.set('token:1', 'ada')),

  redeem: (url) =>
    withNodeRedis(url, async (client) => {
      const user = await client.get('token:1')
      if (user !== null) await client.del('token:1')
      return user
    }),

  redeemOnce: (url) => withNodeRedis(url, (client) => client.getDel('token:1')),

  stock: (url) => withNodeRedis(url, (client) => client.set('stock', '5')),

  sell: (url) =>
    withNodeRedis(url, async (client) => {
      const left = Number(await client.get('stock'))
      await client.set('stock', String(left - 1))
    }),

  sellCounted: (url) => withNodeRedis(url, async (client) => void (await client.decr('stock'))),

  enqueue: (url) =>
    withNodeRedis(url, async (client) => {
      if (await client.sAdd('jobs:known', '7')) await client.rPush('jobs', '7')
    }),

  enqueueAtOnce: (url) => withNodeRedis(url, async (client) => void (await client.multi().sAdd('jobs:known', '7').rPush('jobs', '7').exec())),

  jobs: (url) => withNodeRedis(url, (client) => client.lLen('jobs')),
}

module.exports = { clients: { ioredis, 'node-redis': nodeRedis }, withIoredis, withNodeRedis }
