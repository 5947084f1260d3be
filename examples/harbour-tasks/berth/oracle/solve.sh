#!/bin/bash
echo 7 > /output/berth.txt
