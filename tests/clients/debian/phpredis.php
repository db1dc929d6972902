<?php
// PHP's redis extension, also as the store of sessions: usage: phpredis.php URL
$url = parse_url($argv[1]);
$failed = 0;
$checks = [];

function connect(): Redis
{
    global $url;
    $redis = new Redis();
    $redis->connect($url['host'], $url['port'], 5);
    return $redis;
}

function same($got, $wanted): void
{
    if ($got !== $wanted) {
        throw new Exception('got ' . json_encode($got) . ', wanted ' . json_encode($wanted));
    }
}

$checks['values of each type'] = function (Redis $redis): void {
    same($redis->set('k', 'v', ['nx', 'ex' => 100]), true);
    same($redis->get('k'), 'v');
    same($redis->get('missing'), false);
    same($redis->hMSet('h', ['f' => 1, 'g' => 2]), true);
    same($redis->hGetAll('h'), ['f' => '1', 'g' => '2']);
    same($redis->zAdd('z', 1.5, 'a', 2, 'b'), 2);
    same($redis->zRange('z', 0, -1, true), ['a' => 1.5, 'b' => 2.0]);
    same($redis->rPush('l', 'x', 'y'), 2);
    same($redis->lRange('l', 0, -1), ['x', 'y']);
    same($redis->sAdd('s', 'x'), 1);
    same($redis->mGet(['k', 'missing']), ['v', false]);
    same($redis->lPush('k', 1), false);
    same(strncmp($redis->getLastError(), 'WRONGTYPE', 9), 0);
    same($redis->blPop('nothing', 1), []);
    same($redis->info('server')['redis_version'], '7.0.15');
    $redis->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_PHP);
    $redis->set('object', ['a' => [1, 2.5, null]]);
    same($redis->get('object'), ['a' => [1, 2.5, null]]);
};

$checks['pipelines, transactions and scripts'] = function (Redis $redis): void {
    same($redis->pipeline()->incr('n')->incr('n')->get('n')->exec(), [1, 2, '2']);
    same($redis->multi()->set('k', 'v')->get('k')->exec(), [true, 'v']);
    $redis->watch('n');
    connect()->incr('n');
    same($redis->multi()->get('n')->exec(), false);
    $sha = $redis->script('load', "return {KEYS[1], ARGV[1], redis.call('GET', KEYS[1])}");
    same($redis->evalSha($sha, ['n', 'a'], 1), ['n', 'a', '3']);
    same($redis->eval('return x'), false);
    same(strncmp($redis->getLastError(), 'ERR user_script:1: Script attempted to access', 45), 0);
};

$checks['scans and streams'] = function (Redis $redis): void {
    for ($n = 0; $n < 300; $n++) {
        $redis->set("k:$n", $n);
    }
    $redis->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
    $seen = [];
    $cursor = null;
    while (($keys = $redis->scan($cursor, 'k:*', 50)) !== false) {
        $seen = array_merge($seen, $keys);
    }
    same(count(array_unique($seen)), 300);
    $redis->xGroup('CREATE', 's', 'g', '0', true);
    $id = $redis->xAdd('s', '*', ['n' => '1']);
    same($redis->xReadGroup('g', 'c', ['s' => '>'], 5), ['s' => [$id => ['n' => '1']]]);
    same($redis->xAck('s', 'g', [$id]), 1);
};

$checks['sessions, with locks'] = function (Redis $redis): void {
    global $url;
    ini_set('session.save_handler', 'redis');
    ini_set('session.save_path', "tcp://{$url['host']}:{$url['port']}?prefix=sess:");
    ini_set('redis.session.locking_enabled', '1');
    ini_set('session.use_cookies', '0');
    ini_set('session.cache_limiter', '');
    session_id('one');
    same(session_start(), true);
    $_SESSION['user'] = 'x';
    same($redis->exists('sess:one_LOCK'), 1);
    session_write_close();
    same($redis->exists('sess:one_LOCK'), 0);
    $_SESSION = [];
    session_id('one');
    session_start();
    same($_SESSION, ['user' => 'x']);
    session_destroy();
    same($redis->exists('sess:one'), 0);
};

set_time_limit(120);
ob_start();
$report = '';
foreach ($checks as $name => $check) {
    $redis = connect();
    $redis->flushAll();
    try {
        $check($redis);
    } catch (Throwable $error) {
        $failed++;
        $report .= "FAILED phpredis.php: $name: $error\n";
    }
}
ob_end_flush();
echo $report, 'phpredis.php: ', count($checks) - $failed, " passed, $failed failed\n";
exit($failed ? 1 : 0);
